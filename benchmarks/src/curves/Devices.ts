/**
 * `devices`: what devices that are merely stored cost a report, and a page of their list.
 */
import { storeDevices } from "../StoredDevices.ts"
import { costOfRequests } from "./Cost.ts"
import type { Curve } from "./Curve.ts"
import { costly, reporters, reporting, type RunningCloud } from "./Reporting.ts"

const pageSize = 10
const pageMillis = 1000

/** Reads a page of the devices of a product with a status. */
const readPage = ({ devices, http }: RunningCloud, page: number) => async (): Promise<void> => {
  const query = `product_key=${devices[0]!.productKey}&status=unactive&page=${page}&page_size=${pageSize}`
  const response = await fetch(`${http.url}/openapi/v1/things?${query}`, {
    headers: { authorization: `Bearer ${http.accessKey}` }
  })
  await response.text()
  if (response.status !== 200) throw new Error(`HTTP ${response.status}`)
}

export const devices: Curve = {
  name: "devices",
  title: "Stored devices",
  text: "The devices that report are 200 others of the same product. A page has ten devices of a status. PostgreSQL.",
  axis: "devices",
  points: [1000, 10_000, 100_000, 1_000_000],
  panels: [
    { figure: "server", title: "Server, µs for a report" },
    { figure: "database", title: "PostgreSQL, µs for a report" },
    { figure: "firstPage", title: "Both, µs for the first page" },
    { figure: "lastPage", title: "Both, µs for the last page" }
  ],
  cloud: reporting({
    cloud: () => ({ plan: { devices: reporters }, isDurable: true }),
    prepare: async (cloud, point) => {
      await storeDevices(cloud.durable!.query, cloud.devices[0]!.deviceId, point)
      const [first, last] = [readPage(cloud, 1), readPage(cloud, point / pageSize)]
      return async () => ({
        firstPage: await costOfRequests(costly(cloud), pageMillis, first),
        lastPage: await costOfRequests(costly(cloud), pageMillis, last)
      })
    }
  })
}
