/**
 * Parts that name products and devices, and say how devices are.
 */
import { ApiError } from "../api/ApiError.ts"
import { api } from "../api/client.ts"
import type { Data, Item } from "../api/Operations.ts"
import { ownProducts } from "../api/session.ts"
import { type Query, useQuery } from "../api/useQuery.ts"
import { useTexts } from "../text/text.ts"
import { type FieldProps, SelectField, TextField } from "./Form.tsx"
import { Badge, type Mood } from "./Small.tsx"
import type { UrlState } from "./useUrl.ts"

type ProductPage = Data<typeof api.products.listProducts>
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

/** A page of the products. A key that is limited to products may not list: it reads each of its own, all on one page. */
export const readProducts = async (
  query: { readonly page?: number; readonly page_size: number },
  signal: AbortSignal
): Promise<ProductPage> => {
  if (ownProducts.value === undefined) return api.products.listProducts({ query, signal })
  const read = await Promise.all(ownProducts.value.map((key) => readProduct(key, signal)))
  const results = read.filter((product) => product !== undefined)
  return { page: 1, pages: 1, page_size: results.length, total: results.length, results }
}

/** Undefined: the product was deleted. */
const readProduct = async (product_key: string, signal: AbortSignal): Promise<Product | undefined> => {
  try {
    return (await api.products.getProduct({ params: { product_key }, signal })).product_info
  } catch (error) {
    if (error instanceof ApiError && error.isMissing) return undefined
    throw error
  }
}

/** The latest products, and how many there are. */
export const useProducts = (): Query<ProductPage> => useQuery((signal) => readProducts({ page_size: shown }, signal), [])

/** The product that the address names for a list. A key that is limited to products has to name one: its first. */
export const productOf = (url: UrlState): string => url.get("product") || (ownProducts.value?.[0] ?? "")

/** Chooses the product of a list. A batch is of one product: it is not that of the next. */
export const ProductFilter = ({ products, url }: { readonly url: UrlState; readonly products: Query<ProductPage> }) => {
  const { common } = useTexts()
  return (
    <ProductField
      label={common.productLabel}
      emptyTitle={ownProducts.value === undefined ? common.anyProduct : undefined}
      products={products}
      value={productOf(url)}
      onChange={(product, isTyped) => url.set({ product, batch: "" }, isTyped)}
    />
  )
}

/** Chooses a product; of a project with very many, one writes its key. An empty value: any, or none yet. */
export const ProductField = (
  { emptyTitle, fits = () => true, onChange, products, value, ...field }: FieldProps & {
    readonly value: string
    /** `isTyped`: it is a text to which each key adds. */
    readonly onChange: (productKey: string, isTyped: boolean) => void
    readonly products: Query<ProductPage>
    /** What an empty value is called; undefined: there is none. */
    readonly emptyTitle: string | undefined
    /** Which products can be chosen. */
    readonly fits?: (product: Product) => boolean
  }
) => {
  const { results = [], total = 0 } = products.data ?? {}
  if (total > shown) return <TextField {...field} value={value} onInput={(typed) => onChange(typed.trim(), true)} />
  const known = results.filter(fits).map((product) => [product.product_key, product.name] as const)
  const isKnown = value === "" || known.some(([key]) => key === value)
  return (
    <SelectField
      {...field}
      value={value}
      options={[...emptyTitle === undefined ? [] : [["", emptyTitle] as const], ...known, ...isKnown ? [] : [[value, value] as const]]}
      onChange={(chosen) => onChange(chosen, false)}
    />
  )
}
