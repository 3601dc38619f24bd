/**
 * The management API on a real socket, and devices that speak HTTP.
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
