/**
 * The version of a shadow never goes back.
 */
import { type DeviceId, ShadowStore } from "@device-cloud/core"
import { Effect, Option } from "effect"
import type { Inspection, Invariant } from "../Witness.ts"

export const name = "shadow versions grow"

export const make = ({ read, violated }: Inspection): Invariant => {
  const versions = new Map<DeviceId, number>()
  return {
    acknowledged: ({ device: { deviceId, deviceName } }) => {
      const shadow = Option.getOrUndefined(
        read(Effect.flatMap(Effect.service(ShadowStore), (store) => store.get(deviceId)))
      )
      if (shadow === undefined) return
      const before = versions.get(deviceId) ?? 0
      if (shadow.version < before) {
        violated(name, `the shadow of ${deviceName} has version ${shadow.version} after ${before}`)
      }
      versions.set(deviceId, shadow.version)
    }
  }
}
