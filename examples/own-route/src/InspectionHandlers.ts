/**
 * What Acme's routes do.
 */
import { Devices } from "@device-cloud/core"
import { CurrentPrincipal, done, respond } from "@device-cloud/http"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { InspectionApi, NotInspected } from "./InspectionApi.ts"
import { Inspections } from "./Inspections.ts"

export const layer = HttpApiBuilder.group(
  InspectionApi,
  "inspections",
  Effect.fnUntraced(function*(handlers) {
    const devices = yield* Devices
    const inspections = yield* Inspections
    return handlers.handleAll({
      recordInspection: ({ params, payload }) =>
        done(Effect.gen(function*() {
          const { projectId } = yield* CurrentPrincipal
          // Only devices of the project of the access key.
          const { device } = yield* devices.get(projectId, { deviceId: params.device_id })
          yield* inspections.record(device.deviceId, payload)
        })),
      latestInspection: ({ params }) =>
        respond(
          Effect.gen(function*() {
            const { projectId } = yield* CurrentPrincipal
            const { device } = yield* devices.get(projectId, { deviceId: params.device_id })
            const latest = yield* inspections.latest(device.deviceId)
            return latest ?? (yield* Effect.fail(
              NotInspected.make({ message: `Nobody has inspected device ${device.deviceId}; record an inspection` })
            ))
          }),
          (inspection) => inspection
        )
    })
  })
)
