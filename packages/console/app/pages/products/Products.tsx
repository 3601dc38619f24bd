import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"

const Products = () => {
  const { shell } = useTexts()
  return <Page title={shell.pages.products}>{null}</Page>
}

export default Products
