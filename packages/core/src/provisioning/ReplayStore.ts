/**
 * Port: which randoms devices have used in messages over HTTP.
 */
import { Context, type Effect } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"

/** Randoms of one device that are kept at a time, at most. */
export const maxRandoms = 2000

/** Laws: each call is one transaction. Of several calls with one random at the same time, one gets `fresh`. */
export class ReplayStore extends Context.Service<ReplayStore, {
  /**
   * Marks the random as used by the device until `until`. Returns `used` if it is
   * marked at `at`, which may be `until` itself, and `full` if so many others are: {@link maxRandoms}. Both
   * change nothing. Times are Unix milliseconds.
   */
  readonly use: (options: {
    readonly deviceId: DeviceId
    readonly random: string
    readonly at: number
    readonly until: number
  }) => Effect.Effect<"fresh" | "used" | "full", StoreError>
  /** Forgets marks that ended before `endedBefore`, Unix milliseconds, at most `limit`. Returns how many. */
  readonly prune: (options: { readonly endedBefore: number; readonly limit: number }) => Effect.Effect<
    number,
    StoreError
  >
}>()("@device-cloud/core/provisioning/ReplayStore") {}
