/**
 * Device Cloud with promises: the core in this process (`startCloud`), and the
 * management API of a server (`connect`). Nobody has to know Effect.
 */
export * from "./Api.ts"
export * from "./Cloud.ts"
export { CloudError, type CloudErrorOf } from "./CloudError.ts"
export type { CloudEvent, SubscribeOptions } from "./EventLoop.ts"
/** For packages that offer services of their own with promises. */
export { type Given, type Promised, promisedMembers, type PromisedServices, type Runner } from "./Promised.ts"
export { runnerOf } from "./Run.ts"
