/**
 * Port: the transaction of the uplink. Messages of devices change shadows, add to
 * the feed and the history, fire scenes and move commands forward; the store keeps
 * all of it or nothing.
 */
import { Context, type Effect, type Option } from "effect"
import type { CommandProgress } from "../command/Command.ts"
import type { DeviceId } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { Reaction } from "../events/Reactions.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Shadow } from "../shadow/Shadow.ts"

/** What is stored with the shadow of a device. */
export interface UplinkFacts {
  /** What the device has reported, for the feed; its history follows from it (`historyOf`). */
  readonly happened: ReadonlyArray<DomainEvent>
  readonly reactions: ReadonlyArray<Reaction>
}

/** The part of a batch that belongs to one device. */
export interface DeviceCommit<out A> {
  readonly deviceId: DeviceId
  /**
   * Returns the shadow after the batch and the facts to store with it. Pure: it
   * runs again with a newer shadow when another writer was faster. If it returns
   * the shadow unchanged, the stored one stays.
   */
  readonly update: (shadow: Shadow) => readonly [result: A, shadow: Shadow, facts: UplinkFacts]
}

/** What is stored together. */
export interface UplinkBatch<out A> {
  /** At most one for each device. */
  readonly devices: ReadonlyArray<DeviceCommit<A>>
  /** Steps of commands, as `CommandStore.advance` takes them. */
  readonly commands: ReadonlyArray<CommandProgress>
  /** What else has happened, for the feed: replies to commands. */
  readonly happened?: ReadonlyArray<DomainEvent>
  /** True: another store keeps the history of the batch (`HistoryApart`); nobody asks this one for it. */
  readonly isHistoryApart?: boolean
  /**
   * Called after the updates of all devices have run, and before anything of the
   * batch is stored. False: the updates must run again. Returns true in the end.
   */
  readonly isComplete?: () => boolean
}

/**
 * Laws: no concurrent update of a shadow is lost. Devices that meet no
 * concurrent writer are one transaction with their facts and with all steps of
 * commands; the others follow in further transactions. A device without stored
 * shadow has the empty one. After a failure, nothing of the device's part has
 * taken effect.
 */
export class UplinkStore extends Context.Service<UplinkStore, {
  /** Stores the batch and returns the results in the order of the devices; none: the device does not exist. */
  readonly commit: <A>(
    batch: UplinkBatch<A>
  ) => Effect.Effect<ReadonlyArray<Option.Option<A>>, StoreError>
}>()("@device-cloud/core/uplink/UplinkStore") {}
