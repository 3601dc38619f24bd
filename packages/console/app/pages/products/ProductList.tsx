/**
 * The products that the access key may see, page by page.
 */
import { useQuery } from "../../api/useQuery.ts"
import { type Product, readProducts } from "../../parts/Devices.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Ago, Badge } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"

export const ProductList = () => {
  const { products } = useTexts()
  const url = useUrl()
  const query = useQuery((signal) => readProducts({ page: url.page, page_size: 25 }, signal), [url.page])
  return (
    <Listing query={query} empty={<Empty title={products.emptyTitle}>{products.emptyBody}</Empty>}>
      {(rows) => (
        <Table caption={products.caption} columns={columnsOf()} rows={rows} keyOf={({ product_key }) => product_key} />
      )}
    </Listing>
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
