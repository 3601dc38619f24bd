import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Scene = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.scenes}>{null}</Page>
}

export default Scene
