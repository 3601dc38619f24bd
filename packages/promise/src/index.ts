/**
 * Device Cloud with promises: the core in this process (`startCloud`), and the
 * management API of a server (`connect`). Nobody has to know Effect.
 */
export * from "./Api.ts"
export * from "./Cloud.ts"
export { CloudError, type CloudErrorOf } from "./CloudError.ts"
export type { CloudEvent, SubscribeOptions } from "./EventLoop.ts"
export type { Promised, PromisedServices } from "./Promised.ts"
