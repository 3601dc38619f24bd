/**
 * The products of the project.
 */
import { useState } from "preact/hooks"
import { canWrite, ownProducts } from "../../api/session.ts"
import { Page } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"
import { NewProduct } from "./NewProduct.tsx"
import { ProductList } from "./ProductList.tsx"

const Products = () => {
  const { products, shell } = useTexts()
  const [isCreating, setCreating] = useState(false)
  const create = canWrite("products") && ownProducts.value === undefined && (
    <button type="button" class="button primary" onClick={() => setCreating(true)}>{products.create}</button>
  )
  return (
    <Page title={shell.pages.products} lead={products.lead} actions={create}>
      <ProductList />
      {isCreating && <NewProduct onClose={() => setCreating(false)} />}
    </Page>
  )
}

export default Products
