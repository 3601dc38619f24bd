import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const AuditLog = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.audit}>{null}</Page>
}

export default AuditLog
