/**
 * One product: what it is, its thing model, and the versions of the model.
 */
import { useRoute } from "preact-iso"
import { api } from "../../api/client.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Page, Tabs } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { useTexts } from "../../text/text.ts"
import { Codec } from "./Codec.tsx"
import { Configuration } from "./Configuration.tsx"
import { ModelEditor } from "./model/ModelEditor.tsx"
import { Versions } from "./model/Versions.tsx"
import { ProductOverview } from "./ProductOverview.tsx"
import { Retention } from "./Retention.tsx"
import { SigningKey } from "./SigningKey.tsx"

const tabs = ["overview", "model", "versions", "codec", "configuration"] as const

const Product = () => {
  const { products, shell } = useTexts()
  const { params } = useRoute()
  const productKey = params["productKey"]!
  const tab = tabs.find((tab) => tab === params["tab"]) ?? "overview"
  const query = useQuery(
    (signal) => api.products.getProduct({ params: { product_key: productKey }, signal }),
    [productKey]
  )
  const address = `/console/products/${encodeURIComponent(productKey)}`
  return (
    <Page
      title={query.data?.product_info.name ?? productKey}
      tab={tab === "overview" ? undefined : products.tabs[tab]}
      crumbs={[{ title: shell.pages.products, href: "/console/products" }]}
    >
      {query.error?.isMissing !== true && <Tabs
        label={shell.pages.products}
        current={tab}
        tabs={tabs.filter((id) => id !== "codec" || query.data?.product_info.data_format === "raw").map((id) => ({
          id,
          title: products.tabs[id],
          href: id === "overview" ? address : `${address}/${id}`
        }))}
      />}
      <Shown query={query}>
        {({ product_info }) => (
          <>
            {tab === "overview" && (
              <div class="stack">
                <ProductOverview product={product_info} reload={query.reload} />
                <div class="halves">
                  <Retention productKey={productKey} />
                  <SigningKey productKey={productKey} />
                </div>
              </div>
            )}
            {tab === "model" && <ModelEditor productKey={productKey} />}
            {tab === "versions" && <Versions productKey={productKey} />}
            {tab === "codec" && <Codec productKey={productKey} />}
            {tab === "configuration" && <Configuration productKey={productKey} />}
          </>
        )}
      </Shown>
    </Page>
  )
}

export default Product
