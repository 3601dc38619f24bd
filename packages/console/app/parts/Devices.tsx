/**
 * Parts that name products and devices, and say how devices are.
 */
import { api } from "../api/client.ts"
import type { Data, Item } from "../api/Operations.ts"
import { type Query, useQuery } from "../api/useQuery.ts"
import { useTexts } from "../text/text.ts"
import { type FieldProps, SelectField, TextField } from "./Form.tsx"
import { Badge, type Mood } from "./Small.tsx"

export type Product = Item<typeof api.products.listProducts>
export type DeviceStatus = "online" | "offline" | "unactive"

const moods: Readonly<Record<DeviceStatus, Mood>> = { online: "good", offline: "plain", unactive: "warn" }

/** Online, offline, or never connected. */
export const StatusBadge = ({ status }: { readonly status: string }) => {
  const { common } = useTexts()
  const known = status as DeviceStatus
  return <Badge mood={moods[known] ?? "plain"}>{common.deviceStatus[known] ?? status}</Badge>
}

/** The page of a device. */
export const deviceHref = (deviceId: string, tab?: string): string =>
  `/console/devices/${encodeURIComponent(deviceId)}${tab === undefined ? "" : `/${tab}`}`

export const DeviceLink = ({ id, name }: { readonly id: string; readonly name: string }) => (
  <a href={deviceHref(id)}>{name}</a>
)

/** As many as one can choose from in a list. */
const shown = 100

/** The latest products, and how many there are. */
export const useProducts = (): Query<Data<typeof api.products.listProducts>> =>
  useQuery((signal) => api.products.listProducts({ query: { page_size: shown }, signal }), [])

/** Chooses a product; of a project with very many, one writes its key. An empty value: any, or none yet. */
export const ProductField = (
  { emptyTitle, fits = () => true, onChange, products, value, ...field }: FieldProps & {
    readonly value: string
    readonly onChange: (productKey: string) => void
    readonly products: Query<Data<typeof api.products.listProducts>>
    readonly emptyTitle: string
    /** Which products can be chosen. */
    readonly fits?: (product: Product) => boolean
  }
) => {
  const { results = [], total = 0 } = products.data ?? {}
  if (total > shown) return <TextField {...field} value={value} onInput={onChange} />
  const known = results.filter(fits).map((product) => [product.product_key, product.name] as const)
  const isKnown = value === "" || known.some(([key]) => key === value)
  return (
    <SelectField
      {...field}
      value={value}
      options={[["", emptyTitle], ...known, ...isKnown ? [] : [[value, value] as const]]}
      onChange={onChange}
    />
  )
}
