/**
 * Port: why devices could not connect lately.
 */
import { Context, type Effect } from "effect"
import type { DeviceId, DeviceName } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"

/** Refusals of a device that are kept, those that are equal counted as one. */
export const keptRefusals = 20

/** Why CONNECTs of a device from one address were refused. */
export interface ConnectRefusal {
  /** Where they came from; of an IPv6 address its network of 64 bits. */
  readonly address: string
  /** A sentence for the operator; printable, of a few hundred characters at most. */
  readonly reason: string
  /** The return code of the CONNACK. */
  readonly returnCode: number
  /** How often. */
  readonly times: number
  /** The first and the latest one, Unix milliseconds. */
  readonly firstAt: number
  readonly at: number
}

/** Refusals of the device that a CONNECT named. It may not exist. */
export interface NewConnectRefusal extends ConnectRefusal {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
}

/** Laws: each call is one transaction. The refusals of a device go with it. */
export class ConnectRefusalStore extends Context.Service<ConnectRefusalStore, {
  /**
   * Adds refusals. Those of one device, address and reason count as one: `times`
   * add up, `at` is the latest, `firstAt` the earliest. Of each device the latest
   * {@link keptRefusals} stay. Refusals of devices that do not exist are dropped.
   */
  readonly add: (refusals: ReadonlyArray<NewConnectRefusal>) => Effect.Effect<void, StoreError>
  /** Returns the refusals of a device, the latest first. */
  readonly of: (deviceId: DeviceId) => Effect.Effect<ReadonlyArray<ConnectRefusal>, StoreError>
}>()("@device-cloud/core/provisioning/ConnectRefusalStore") {}
