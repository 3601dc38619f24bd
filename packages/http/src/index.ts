/**
 * The management API of Device Cloud.
 */
export { Api } from "./DeviceCloudApi.ts"
export { DeviceCloudClient } from "./DeviceCloudClient.ts"
export type { ReadinessChecks } from "./HealthRoutes.ts"
export * as ManagementApi from "./ManagementApi.ts"
export { Authorization } from "./middleware/Authorization.ts"
export { InvalidRateLimit, type RateLimitOptions } from "./middleware/RateLimits.ts"
