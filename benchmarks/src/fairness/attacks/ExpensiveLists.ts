/**
 * Lists of one project that read many rows.
 */
import type { Attack } from "../Attack.ts"
import { floodHttp } from "../HttpFlood.ts"

const concurrency = 100
const devices = 10_000

export const expensiveLists: Attack = {
  name: "expensive-lists",
  prepare: async (attacker) => {
    const { tenant } = attacker
    const product = await tenant.createProduct("Lists")
    const batches = `/products/${product.product_key}/batch-things`
    const { batch_id } = await tenant.call<{ readonly batch_id: number }>("POST", batches, { num: devices, desc: "" })
    const [device] = await tenant.createDevices(product, 1)
    const paths = [
      ...Array.from({ length: 8 }, (_, i) => `/things?page_size=100&page=${100 - i}`),
      `/things?page_size=100&product_key=${product.product_key}&device_name=${device!.deviceName.slice(0, 2)}`,
      `${batches}/${batch_id}?format=csv`,
      `/things/${device!.deviceId}/properties/temperature/history?limit=1000`
    ]
    let turn = 0
    return () =>
      floodHttp(attacker, concurrency, () => ({ method: "GET", path: `/openapi/v1${paths[turn++ % paths.length]}` }))
  }
}
