/**
 * Devices that were created together, and the triples that a factory burns into them.
 */
import { useState } from "preact/hooks"
import { api, downloadAddress } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite, may } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ProductField, useProducts } from "../../parts/Devices.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { NewBatch } from "./NewBatch.tsx"

type Batch = Item<typeof api.batches.listBatches>

export const Batches = () => {
  const { common, devices } = useTexts()
  const url = useUrl()
  const products = useProducts()
  const productKey = url.get("product")
  return (
    <div class="stack">
      <div class="filters">
        <ProductField
          label={common.productLabel}
          emptyTitle={common.chooseProduct}
          products={products}
          value={productKey}
          onChange={(product, isTyped) => url.set({ product }, isTyped)}
        />
      </div>
      {productKey === ""
        ? <Empty title={devices.batch.chooseProduct} />
        : <BatchList key={productKey} productKey={productKey} />}
    </div>
  )
}

const BatchList = ({ productKey }: { readonly productKey: string }) => {
  const { devices } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = useQuery(
    (signal) =>
      api.batches.listBatches({
        params: { product_key: productKey },
        query: { page: url.page, page_size: 25 },
        signal
      }),
    [productKey, url.page]
  )
  return (
    <>
      {canWrite("batches") && (
        <div class="row end">
          <button type="button" class="button primary" onClick={() => setCreating(true)}>{devices.createBatch}</button>
        </div>
      )}
      <Listing query={query} empty={<Empty title={devices.batch.empty} />}>
        {(rows) => (
          <Table
            caption={devices.batch.caption}
            columns={columnsOf(query.reload)}
            rows={rows}
            keyOf={({ batch_id }) => String(batch_id)}
          />
        )}
      </Listing>
      {isCreating && <NewBatch productKey={productKey} onClose={() => setCreating(false)} onCreated={query.reload} />}
    </>
  )
}

const columnsOf = (reload: () => void): ReadonlyArray<Column<Batch>> => {
  const { common, devices } = texts()
  return [
    { id: "id", title: devices.batch.id, kind: "tight", cell: ({ batch_id }) => batch_id },
    { id: "desc", title: common.description, cell: ({ desc }) => <span class="wrap">{desc}</span> },
    { id: "num", title: devices.batch.devices, kind: "number", cell: ({ num }) => formatNumber(num) },
    { id: "created", title: common.created, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: (batch) => <BatchActions batch={batch} reload={reload} />
    }
  ]
}

const BatchActions = (
  { batch: { batch_id, num, product_key }, reload }: { readonly batch: Batch; readonly reload: () => void }
) => {
  const { devices } = useTexts()
  const params = { product_key, batch_id: String(batch_id) }
  return (
    <div class="row">
      <a class="button small" href={`/console/devices?product=${product_key}&batch=${batch_id}`}>{devices.batch.show}</a>
      {may("operator") && (
        <a
          class="button small"
          href={downloadAddress(["batches", "getBatch"], { params, query: { format: "csv" } })}
          download={`batch-${batch_id}.csv`}
        >
          {devices.batch.csv}
        </a>
      )}
      {canWrite("batches") && (
        <DeleteButton
          title={devices.batch.removeTitle(batch_id)}
          body={devices.batch.removeBody(formatNumber(num))}
          remove={() => api.batches.deleteBatch({ params })}
          onDeleted={reload}
        />
      )}
    </div>
  )
}
