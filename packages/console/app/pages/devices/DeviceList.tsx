/**
 * The devices that fit the filters of the address, page by page, with their presence live.
 */
import { useEffect, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { DeviceLink, type DeviceStatus, productOf, StatusBadge, useProducts } from "../../parts/Devices.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Ago, Badge } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { type UrlState, useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { BulkActions, hasActions } from "./BulkActions.tsx"
import { DeviceFilters, hasFilters } from "./DeviceFilters.tsx"

export type DeviceRow = Item<typeof api.devices.listDevices>

export const DeviceList = () => {
  const { devices } = useTexts()
  const url = useUrl()
  const products = useProducts()
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [hasChanged, setChanged] = useState(false)
  const filters = queryOf(url)
  const query = useQuery((signal) => {
    setChanged(false)
    return api.devices.listDevices({ query: filters, signal })
  }, [JSON.stringify(filters)])

  useEffect(() => setSelected(new Set()), [JSON.stringify(filters)])
  useLive({ product_key: productOf(url) || undefined, types: ["status", "lifecycle"] }, (event) => {
    if (event.type === "lifecycle") setChanged(true)
    else {
      query.change((page) => ({
        ...page,
        results: page.results.map((device) =>
          device.device_id === event.device_id ? { ...device, status: event["status"] as DeviceStatus } : device
        )
      }))
    }
  })

  return (
    <div class="stack">
      <DeviceFilters url={url} products={products} />
      {hasChanged && (
        <div class="notice row apart" role="status">
          {devices.changed}
          <button type="button" class="button small" onClick={query.reload}>{devices.reload}</button>
        </div>
      )}
      <Listing query={query} empty={<NoDevices url={url} />}>
        {(rows) => {
          // Somebody else may have deleted one that was selected.
          const ids = rows.map(({ device_id }) => device_id).filter((id) => selected.has(id))
          return (
            <Table
              caption={devices.caption}
              columns={columnsOf()}
              rows={rows}
              keyOf={({ device_id }) => device_id}
              nameOf={({ device_name }) => device_name}
              selection={hasActions()
                ? {
                  keys: selected,
                  onChange: setSelected,
                  actions: ids.length > 0 && (
                    <BulkActions
                      ids={ids}
                      onDone={(left) => {
                        setSelected(new Set(left))
                        query.reload()
                      }}
                    />
                  )
                }
                : undefined}
            />
          )
        }}
      </Listing>
    </div>
  )
}

const NoDevices = ({ url }: { readonly url: UrlState }) => {
  const { devices } = useTexts()
  return hasFilters(url)
    ? (
      <Empty
        title={devices.noneFitTitle}
        actions={<a class="button" href="/console/devices">{devices.clearFilters}</a>}
      />
    )
    : (
      <Empty
        title={devices.emptyTitle}
        actions={canWrite("devices") && <a class="button primary" href="/console/devices/connect">{devices.connect}</a>}
      >
        {devices.emptyBody}
      </Empty>
    )
}

const queryOf = (url: UrlState) => {
  const given = {
    product_key: productOf(url),
    status: url.get("status") as DeviceStatus,
    enabled_status: url.get("enabled") as "enable" | "disable",
    tag: url.get("tag"),
    keyword: url.get("search"),
    batch_id: Number(url.get("batch")) || undefined
  }
  return {
    page: url.page,
    page_size: Number(url.get("rows")) || 25,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value)) as Partial<typeof given>
  }
}

const columnsOf = (): ReadonlyArray<Column<DeviceRow>> => {
  const { common, devices } = texts()
  return [
    {
      id: "name",
      title: common.deviceName,
      cell: ({ device_id, device_name, enabled_status, nickname }) => (
        <>
          <DeviceLink id={device_id} name={device_name} />
          {nickname !== "" && <span class="soft">{nickname}</span>}
          {enabled_status === "disable" && <> <Badge mood="bad">{devices.enabledStatus.disable}</Badge></>}
        </>
      )
    },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <StatusBadge status={status} /> },
    {
      id: "product",
      title: common.productLabel,
      cell: ({ product_key, product_name }) => <a href={`/console/products/${product_key}`}>{product_name}</a>
    },
    { id: "firmware", title: devices.firmware, cell: ({ firmware_version }) => firmware_version },
    {
      id: "tags",
      title: devices.tags,
      cell: ({ tags }) => <span class="small wrap">{Object.entries(tags).map((tag) => tag.join(":")).join(", ")}</span>
    },
    { id: "created", title: common.created, kind: "tight", cell: ({ created_at }) => <Ago at={created_at} /> }
  ]
}
