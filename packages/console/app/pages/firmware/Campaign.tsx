import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Campaign = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.firmware}>{null}</Page>
}

export default Campaign
