/**
 * The firmware of the project.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ProductFilter, productOf, useProducts } from "../../parts/Devices.tsx"
import { TextField } from "../../parts/Form.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Ago, Badge, type Mood } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatBytes, texts, useTexts } from "../../text/text.ts"
import { NewFirmware } from "./NewFirmware.tsx"

export type FirmwareRow = Item<typeof api.ota.listFirmwares>

const Firmware = () => {
  const { firmware, shell } = useTexts()
  const url = useUrl()
  const products = useProducts()
  const [isCreating, setCreating] = useState(false)
  const product = productOf(url)
  const name = url.get("name")
  const query = useQuery(
    (signal) =>
      api.ota.listFirmwares({
        query: {
          page: url.page,
          page_size: 25,
          ...product === "" ? {} : { product_key: product },
          ...name === "" ? {} : { name }
        },
        signal
      }),
    [url.page, product, name]
  )
  return (
    <Page
      title={shell.pages.firmware}
      lead={firmware.lead}
      actions={canWrite("ota") && canWrite("objects") && (
        <button type="button" class="button primary" onClick={() => setCreating(true)}>{firmware.upload}</button>
      )}
    >
      <div class="stack">
        <div class="filters">
          <TextField label={firmware.search} type="search" value={name} onInput={(name) => url.set({ name }, true)} />
          <ProductFilter products={products} url={url} />
        </div>
        <Listing query={query} empty={<Empty title={firmware.emptyTitle}>{firmware.emptyBody}</Empty>}>
          {(rows) => <Table caption={firmware.caption} columns={columnsOf()} rows={rows} keyOf={({ id }) => String(id)} />}
        </Listing>
      </div>
      {isCreating && <NewFirmware product={product} products={products} onClose={() => setCreating(false)} />}
    </Page>
  )
}

const moods: ReadonlyArray<Mood> = ["plain", "busy", "good", "bad", "plain"]

/** Whether a firmware has been tried. */
export const FirmwareStatus = ({ status }: { readonly status: number }) => {
  const { firmware } = useTexts()
  return <Badge mood={moods[status] ?? "plain"}>{firmware.statuses[status] ?? status}</Badge>
}

/** Of a file elsewhere it may not be known. */
export const sizeOf = (bytes: number): string => bytes === 0 ? "" : formatBytes(bytes)

const columnsOf = (): ReadonlyArray<Column<FirmwareRow>> => {
  const { common, firmware } = texts()
  return [
    {
      id: "name",
      title: firmware.name,
      cell: ({ id, name }) => <a class="wrap" href={`/console/firmware/${id}`}>{name}</a>
    },
    { id: "version", title: firmware.version, kind: "tight", cell: ({ version }) => version },
    { id: "module", title: firmware.module, cell: ({ module }) => module },
    {
      id: "product",
      title: common.productLabel,
      cell: ({ product_key, product_name }) => <a href={`/console/products/${product_key}`}>{product_name}</a>
    },
    { id: "size", title: firmware.size, kind: "number", cell: ({ size }) => sizeOf(size) },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <FirmwareStatus status={status} /> },
    { id: "created", title: common.created, kind: "tight", cell: ({ created_at }) => <Ago at={created_at} /> }
  ]
}

export default Firmware
