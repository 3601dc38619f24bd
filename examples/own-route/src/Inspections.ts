/**
 * What Acme knows of inspections. A real application keeps it in a database.
 */
import type { DeviceId } from "@device-cloud/core"
import { Context, Effect, Layer } from "effect"
import type { Inspection } from "./InspectionApi.ts"

export class Inspections extends Context.Service<Inspections, {
  /** Records an inspection in the place of the one before. */
  readonly record: (deviceId: DeviceId, inspection: typeof Inspection.Type) => Effect.Effect<void>
  /** Returns the latest inspection; undefined: there was none. */
  readonly latest: (deviceId: DeviceId) => Effect.Effect<typeof Inspection.Type | undefined>
}>()("acme/Inspections") {
  static readonly layer = Layer.sync(Inspections, () => {
    const latest = new Map<DeviceId, typeof Inspection.Type>()
    return Inspections.of({
      record: (deviceId, inspection) => Effect.sync(() => void latest.set(deviceId, inspection)),
      latest: (deviceId) => Effect.sync(() => latest.get(deviceId))
    })
  })
}
