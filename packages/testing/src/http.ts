/**
 * The management API on a real socket, and devices that speak HTTP.
 *
 * ```ts
 * layer(testApi(StorageMemory.layer), { excludeTestServices: true })("lamps", (it) => {
 *   it.effect("can be listed", () =>
 *     Effect.gen(function*() {
 *       const { product_key } = yield* createProduct()
 *       const { device_id } = yield* createDevice(product_key)
 *       const { body } = yield* call("GET", `/things?product_key=${product_key}`)
 *       assert.strictEqual(body.data.results[0].device_id, device_id)
 *     }))
 * })
 * ```
 */
export { type DeviceTriple, sign, signedQuery, uplink } from "./http/HttpDevice.ts"
export {
  type ApiOptions,
  type ApiResponse,
  call,
  type CallOptions,
  callTo,
  createDevice,
  createProduct,
  ownerKey,
  productBody,
  testApi
} from "./http/TestApi.ts"
