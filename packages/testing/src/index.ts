/**
 * Device Cloud in tests: a whole cloud inside the test's process, devices
 * without a network, and time that the test moves.
 *
 * `@device-cloud/testing/mqtt` and `@device-cloud/testing/http` have devices
 * and servers on real sockets; `@device-cloud/testing/contracts` has the laws of
 * the stores.
 */
export * as CloudState from "./CloudState.ts"
export { eventually, type EventuallyOptions, eventuallyPromise } from "./Eventually.ts"
export * as FactoryAuthority from "./FactoryAuthority.ts"
export * as Faults from "./Faults.ts"
export * as Fixtures from "./Fixtures.ts"
export * as LossyNodeBus from "./LossyNodeBus.ts"
export type {
  PromisedBehaviour,
  PromisedDevice,
  PromisedGateway,
  PromisedHandlers,
  StartedTestCloud,
  StartOptions
} from "./PromisedTestCloud.ts"
export * as SimulatedDevice from "./SimulatedDevice.ts"
export * as SimulatedGateway from "./SimulatedGateway.ts"
export { TestCloud } from "./TestCloud.ts"
export * as TestKeyRing from "./TestKeyRing.ts"
