import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Projects = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.projects}>{null}</Page>
}

export default Projects
