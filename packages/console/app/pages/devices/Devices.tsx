import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Devices = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.devices}>{null}</Page>
}

export default Devices
