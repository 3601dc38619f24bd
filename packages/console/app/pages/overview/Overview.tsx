import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Overview = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.overview}>{null}</Page>
}

export default Overview
