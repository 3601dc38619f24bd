import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const MeshNetwork = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.mesh}>{null}</Page>
}

export default MeshNetwork
