/**
 * Which devices the list shows. The filters stand in the address.
 */
import type { Data } from "../../api/Operations.ts"
import type { api } from "../../api/client.ts"
import type { Query } from "../../api/useQuery.ts"
import { ProductFilter } from "../../parts/Devices.tsx"
import { SelectField, TextField } from "../../parts/Form.tsx"
import type { UrlState } from "../../parts/useUrl.ts"
import { useTexts } from "../../text/text.ts"

const names = ["product", "status", "enabled", "tag", "search", "batch"] as const

/** Whether the address names any filter. */
export const hasFilters = (url: UrlState): boolean => names.some((name) => url.get(name) !== "")

export const DeviceFilters = (
  { products, url }: { readonly url: UrlState; readonly products: Query<Data<typeof api.products.listProducts>> }
) => {
  const { common, devices } = useTexts()
  const tag = url.get("tag")
  return (
    <div class="filters" role="search">
      <TextField
        label={devices.search}
        type="search"
        value={url.get("search")}
        onInput={(search) => url.set({ search }, true)}
      />
      <ProductFilter products={products} url={url} />
      <SelectField
        label={common.status}
        value={url.get("status")}
        options={[["", common.all], ...Object.entries(common.deviceStatus)]}
        onChange={(status) => url.set({ status })}
      />
      <SelectField
        label={devices.enabled}
        value={url.get("enabled")}
        options={[["", common.all], ...Object.entries(devices.enabledStatus)]}
        onChange={(enabled) => url.set({ enabled })}
      />
      <TextField
        label={devices.tag}
        placeholder={devices.tagHint}
        value={tag}
        onInput={(tag) => url.set({ tag }, true)}
      />
      <TextField
        label={devices.batch.id}
        type="number"
        min={1}
        value={url.get("batch")}
        onInput={(batch) => url.set({ batch }, true)}
      />
      <SelectField
        label={devices.perPage}
        value={url.get("rows") || "25"}
        options={[["25", "25"], ["50", "50"], ["100", "100"]]}
        onChange={(rows) => url.set({ rows })}
      />
      {hasFilters(url) && <a class="button" href="/console/devices">{devices.clearFilters}</a>}
    </div>
  )
}
