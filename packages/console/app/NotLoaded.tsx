/**
 * What stands in place of a page whose files did not come: the server was away, or
 * serves another version of the console by now.
 */
import { Empty, Page } from "./parts/Page.tsx"
import { useTexts } from "./text/text.ts"

export const NotLoaded = () => {
  const { common } = useTexts()
  return (
    <Page title={common.notLoaded}>
      <Empty
        title={common.notLoaded}
        actions={
          <button type="button" class="button primary" onClick={() => location.reload()}>{common.tryAgain}</button>
        }
      >
        {common.notLoadedHint}
      </Empty>
    </Page>
  )
}
