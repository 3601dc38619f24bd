/**
 * What an address shows that names no page.
 */
import { Empty, Page } from "./parts/Page.tsx"
import { useTexts } from "./text/text.ts"

export const NotFound = () => {
  const { common } = useTexts()
  return (
    <Page title={common.notFound}>
      <Empty title={common.notFound} actions={<a class="button" href="/console">{common.toOverview}</a>}>
        {common.notFoundHint}
      </Empty>
    </Page>
  )
}
