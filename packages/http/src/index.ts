/**
 * The management API of Device Cloud.
 */
export { Authorization } from "./Authorization.ts"
export { Api } from "./DeviceCloudApi.ts"
export { DeviceCloudClient } from "./DeviceCloudClient.ts"
export * as ManagementApi from "./ManagementApi.ts"
export type { ReadinessChecks } from "./Operations.ts"
export { InvalidRateLimit, type RateLimitOptions } from "./RateLimits.ts"
