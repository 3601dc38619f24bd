/**
 * Handlers of the routes of the history.
 */
import {
  type DeviceReference,
  History,
  type HistoryDraft,
  type HistoryFunction,
  historyRead,
  type HistoryScan,
  type HistorySeries
} from "@device-cloud/core"
import { Clock, Effect, Result } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { failWhenEnded } from "../middleware/Caller.ts"
import { Api } from "../DeviceCloudApi.ts"
import { deviceFailures } from "../device/DeviceFailures.ts"
import { failWith } from "../DomainFailures.ts"
import { respond } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import { type HistoryQueryBody, historyRange } from "./HistoryApi.ts"
import { entriesText, successResponse } from "./HistoryEntriesText.ts"
import { exportResponse } from "./HistoryExport.ts"

/** Implements the group `history`. */
export const layer = group(
  Api,
  "history",
  Effect.fnUntraced(function*(handlers) {
    const history = yield* History
    const read = (draft: HistoryDraft) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => historyRead(draft, now)).pipe(Effect.catch(failWith))

    return handlers.handleAll({
      listPropertyHistory: Effect.fnUntraced(function*({ params: { device_id, property_id }, query }) {
        const { projectId } = yield* CurrentPrincipal
        const wanted = yield* read(query)
        if (wanted._tag === "Values") {
          return yield* respond(
            history.properties(projectId, device_id, property_id, wanted.range),
            (samples) => ({ results: samples.map(({ time, value }) => ({ time, value })) })
          )
        }
        const points = yield* history.points(projectId, device_id, property_id, wanted.plot).pipe(
          Effect.catch(failWith)
        )
        return successResponse(`{"results":${entriesText(points, wanted.functions)}}`)
      }),
      queryHistory: Effect.fnUntraced(function*({ payload: { devices, properties, ...draft } }) {
        const { projectId, scopes } = yield* CurrentPrincipal
        const wanted = yield* read(draft)
        const series = yield* history.query(projectId, {
          devices: devices.map(reference),
          propertyIds: properties,
          read: wanted,
          productKeys: scopes.products
        }).pipe(Effect.catch(failWith))
        const functions = wanted._tag === "Values" ? [] : wanted.functions
        // Other requests have their turn between two series.
        const texts = yield* Effect.forEach(series, (one) => Effect.as(Effect.yieldNow, seriesText(one, functions)))
        return successResponse(`{"series":[${texts.join(",")}]}`)
      }),
      exportDeviceHistory: ({ params, query }) =>
        CurrentPrincipal.use((caller) =>
          history.exportDevice(caller.projectId, params.device_id, scanOf(query)).pipe(
            Effect.flatMap((stream) => exportResponse(stream, failWhenEnded(caller), query.format)),
            Effect.catch(failWith)
          )
        ),
      exportProductHistory: ({ params, query }) =>
        CurrentPrincipal.use((caller) =>
          history.exportProduct(caller.projectId, params.product_key, scanOf(query)).pipe(
            Effect.flatMap((stream) => exportResponse(stream, failWhenEnded(caller), query.format)),
            Effect.catch(failWith)
          )
        ),
      listDeviceEvents: ({ params, query: { event_id, ...range } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(history.events(projectId, params.device_id, event_id, historyRange(range)), (events) => ({
            results: events.map(({ eventId, time, value }) => ({ event_id: eventId, time, value }))
          }))
        )
    })
  })
)

const reference = (device: (typeof HistoryQueryBody.Type)["devices"][number]): DeviceReference =>
  "device_id" in device
    ? { deviceId: device.device_id }
    : { productKey: device.product_key, deviceName: device.device_name }

const seriesText = (
  { propertyId, reference, result }: HistorySeries,
  functions: ReadonlyArray<HistoryFunction>
): string => {
  const text = (info: object, results: string) => `${JSON.stringify(info).slice(0, -1)},"results":${results}}`
  if (Result.isFailure(result)) {
    const named = "deviceId" in reference
      ? { device_id: reference.deviceId, product_key: "", device_name: "" }
      : { device_id: "", product_key: reference.productKey, device_name: reference.deviceName }
    const { code, message } = deviceFailures.DeviceNotFound(result.failure)
    return text({ ...named, property_id: propertyId, code, message }, "[]")
  }
  const { device: { deviceId, deviceName, productKey }, entries } = result.success
  const named = { device_id: deviceId, product_key: productKey, device_name: deviceName, property_id: propertyId }
  return text({ ...named, code: 0, message: "success" }, entriesText(entries, functions))
}

const scanOf = ({ end = 8.64e15, property, start = 0 }: {
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly property?: string | ReadonlyArray<string> | undefined
}): HistoryScan => ({
  start,
  end,
  propertyIds: property === undefined ? undefined : [...new Set(typeof property === "string" ? [property] : property)]
})
