import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Gateways = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.gateways}>{null}</Page>
}

export default Gateways
