/**
 * The gateways of a product, and the sub-devices of one of them.
 */
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ProductField, StatusBadge, useProducts } from "../../parts/Devices.tsx"
import { TextField } from "../../parts/Form.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { usePresence } from "../../parts/usePresence.ts"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { Gateway } from "./Gateway.tsx"

type Device = Item<typeof api.devices.listDevices>

const Gateways = () => {
  const { gateways, shell } = useTexts()
  const gatewayId = useUrl().get("gateway")
  if (gatewayId !== "") return <Gateway key={gatewayId} gatewayId={gatewayId} />
  return (
    <Page title={shell.pages.gateways} lead={gateways.lead}>
      <ChooseGateway />
    </Page>
  )
}

const ChooseGateway = () => {
  const { common, gateways } = useTexts()
  const url = useUrl()
  const products = useProducts()
  return (
    <Shown query={products}>
      {({ results, total }) => {
        const known = results.filter(({ node_type }) => node_type === "gateway")
        const productKey = url.get("product") || (known[0]?.product_key ?? "")
        if (known.length === 0 && productKey === "" && total === results.length) return <NoProduct />
        return (
          <div class="stack">
            <div class="filters">
              <ProductField
                label={common.productLabel}
                value={productKey}
                products={products}
                emptyTitle={common.chooseProduct}
                fits={({ node_type }) => node_type === "gateway"}
                onChange={(product, isTyped) => url.set({ product }, isTyped)}
              />
              <TextField
                label={gateways.startsWith}
                type="search"
                value={url.get("text")}
                onInput={(text) => url.set({ text }, true)}
              />
            </div>
            {productKey === ""
              ? <Empty title={gateways.chooseProduct} />
              : <GatewayList productKey={productKey} keyword={url.get("text")} />}
          </div>
        )
      }}
    </Shown>
  )
}

const NoProduct = () => {
  const { gateways } = useTexts()
  return (
    <Empty title={gateways.noProduct} actions={<a class="button primary" href="/console/products">{gateways.toProducts}</a>}>
      {gateways.noProductHint}
    </Empty>
  )
}

const GatewayList = ({ keyword, productKey }: { readonly productKey: string; readonly keyword: string }) => {
  const { gateways } = useTexts()
  const url = useUrl()
  const query = useQuery((signal) =>
    api.devices.listDevices({
      query: { product_key: productKey, page: url.page, page_size: 50, ...keyword === "" ? {} : { keyword } },
      signal
    }), [productKey, keyword, url.page])
  const rows = query.data?.results ?? []
  const presence = usePresence(rows.map(({ device_id }) => device_id))
  return (
    <Listing
      query={query}
      empty={
        <Empty
          title={keyword === "" ? gateways.none : gateways.noneFound}
          actions={keyword === "" && <a class="button" href="/console/devices">{gateways.toDevices}</a>}
        >
          {keyword === "" && gateways.noneHint}
        </Empty>
      }
    >
      {(rows) => (
        <Table
          caption={gateways.caption}
          columns={columnsOf(productKey, presence.data ?? {})}
          rows={rows}
          keyOf={({ device_id }) => device_id}
        />
      )}
    </Listing>
  )
}

const columnsOf = (
  productKey: string,
  statuses: Readonly<Record<string, string>>
): ReadonlyArray<Column<Device>> => {
  const { common, gateways } = texts()
  return [
    {
      id: "name",
      title: common.deviceName,
      cell: ({ device_id, device_name }) => (
        <a href={`/console/gateways?${new URLSearchParams({ product: productKey, gateway: device_id })}`}>{device_name}</a>
      )
    },
    { id: "nickname", title: gateways.nickname, cell: ({ nickname }) => <span class="wrap">{nickname}</span> },
    {
      id: "status",
      title: common.status,
      cell: ({ device_id, status }) => <StatusBadge status={statuses[device_id] || status} />
    },
    { id: "subDevices", title: gateways.subDevices, kind: "number", cell: ({ sub_amount }) => sub_amount }
  ]
}

export default Gateways
