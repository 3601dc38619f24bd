/**
 * The pages that the navigation leads to.
 */
import { canRead, type Need } from "./api/session.ts"

/** The pages, and what each needs of the access key. */
const places = {
  overview: { reads: "overview", isOfProducts: true },
  products: { reads: "products", isOfProducts: true },
  devices: { reads: "devices", isOfProducts: true },
  firmware: { reads: "ota", isOfProducts: true },
  jobs: { reads: "jobs", isOfProducts: false },
  scenes: { reads: "scenes", isOfProducts: false },
  gateways: { reads: "topology", isOfProducts: false },
  mesh: { reads: "mesh", isOfProducts: false },
  events: { reads: "events", isOfProducts: true },
  subscriptions: { reads: "subscriptions", isOfProducts: false },
  keys: { reads: "projects", isOfProducts: false, role: "admin" },
  projects: { reads: "quotas", isOfProducts: false },
  audit: { reads: "audit", isOfProducts: false, role: "admin" }
} satisfies Readonly<Record<string, Need>>

type Place = keyof typeof places

/** The pages that the one who is signed in may read, in the order of the navigation. */
export const readablePlaces = (): ReadonlyArray<Place> =>
  (Object.keys(places) as ReadonlyArray<Place>).filter((place) => canRead(places[place]))

export const addressOf = (place: Place): string => place === "overview" ? "/console" : `/console/${place}`
