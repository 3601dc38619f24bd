/**
 * The management API of Device Cloud: the server, its definition, a typed client,
 * and what an application needs for routes of its own beside it.
 */
export { Code } from "./Code.ts"
export { Api } from "./DeviceCloudApi.ts"
export { DeviceCloudClient } from "./DeviceCloudClient.ts"
export { done, Envelope, EnvelopeOnly, Paged, pageQuery, respond, respondPage } from "./Envelope.ts"
export { type Failure, failure, InvalidParameter, invalidParameter } from "./Failure.ts"
export type { ReadinessChecks } from "./HealthRoutes.ts"
export * as ManagementApi from "./ManagementApi.ts"
export { Authorization, CurrentPrincipal, RequiredRole } from "./middleware/Authorization.ts"
export { IdempotencyMiddleware } from "./middleware/IdempotencyMiddleware.ts"
export { InvalidRateLimit, type RateLimitOptions, RateLimits } from "./middleware/RateLimits.ts"
export { RequestCheck } from "./middleware/RequestCheck.ts"
