import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Events = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.events}>{null}</Page>
}

export default Events
