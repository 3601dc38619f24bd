/**
 * The products of the project.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { canOperate } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import type { Product } from "../../parts/Devices.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Ago, Badge } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { NewProduct } from "./NewProduct.tsx"

const Products = () => {
  const { products, shell } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = useQuery(
    (signal) => api.products.listProducts({ query: { page: url.page, page_size: 25 }, signal }),
    [url.page]
  )
  const create = canOperate.value && (
    <button type="button" class="button primary" onClick={() => setCreating(true)}>{products.create}</button>
  )
  return (
    <Page title={shell.pages.products} lead={products.lead} actions={create}>
      <Listing query={query} empty={<Empty title={products.emptyTitle}>{products.emptyBody}</Empty>}>
        {(rows) => (
          <Table caption={products.caption} columns={columnsOf()} rows={rows} keyOf={({ product_key }) => product_key} />
        )}
      </Listing>
      {isCreating && <NewProduct onClose={() => setCreating(false)} />}
    </Page>
  )
}

const columnsOf = (): ReadonlyArray<Column<Product>> => {
  const { common, products, shell } = texts()
  return [
    {
      id: "name",
      title: common.name,
      cell: ({ name, product_key }) => <a class="wrap" href={`/console/products/${product_key}`}>{name}</a>
    },
    { id: "key", title: products.key, cell: ({ product_key }) => <code>{product_key}</code> },
    { id: "node", title: products.nodeType, cell: ({ node_type }) => products.nodeTypes[node_type] },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <ProductStatus status={status} /> },
    { id: "created", title: common.created, kind: "tight", cell: ({ created_at }) => <Ago at={created_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: ({ product_key }) => (
        <div class="row">
          <a class="button small" href={`/console/products/${product_key}/model`}>{products.tabs.model}</a>
          <a class="button small" href={`/console/devices?product=${product_key}`}>{shell.pages.devices}</a>
        </div>
      )
    }
  ]
}

export const ProductStatus = ({ status }: { readonly status: Product["status"] }) => {
  const { products } = useTexts()
  return <Badge mood={status === "released" ? "good" : "plain"}>{products.statuses[status] ?? status}</Badge>
}

export default Products
