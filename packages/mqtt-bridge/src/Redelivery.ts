/**
 * Finds out whether a message that the broker delivers again is stored: the node
 * before may have ended between the commit and telling the broker.
 */
import { decode, type Route } from "@device-cloud/alink"
import { type DeviceIdentity, equalJson, type HistoryStore, type Json, type StoreError } from "@device-cloud/core"
import { Effect, Predicate } from "effect"

/** Entries of one time that are compared. */
const limit = 100

/**
 * Returns whether the reports of a message are in the history, each at its time. It
 * knows reports of properties and of single events; a batch, a shadow update and
 * the rest it cannot recognize.
 */
export const isStored = Effect.fnUntraced(
  function*(
    history: HistoryStore["Service"],
    device: DeviceIdentity,
    way: Route,
    payload: Buffer,
    receivedAt: number
  ): Effect.fn.Return<boolean, StoreError> {
    const request = decode(way, payload)
    if ("code" in request || !Predicate.isObject(request.params)) return false
    const params = request.params as Readonly<Record<string, Json>>
    const eventId = /^thing\.event\.([^.]+)\.post$/.exec(way.method)?.[1]
    if (eventId === undefined) return false
    if (eventId !== "property") {
      const { time, value } = timed(params, receivedAt)
      const events = yield* history.events(device.deviceId, eventId, { start: time, end: time, limit, order: "asc" })
      return events.some((event) => equalJson(event.value, value))
    }
    // All values of a message are stored together: one says it of all.
    const [first] = Object.entries(params)
    if (first === undefined) return false
    const [id, raw] = first
    const { time, value } = timed(raw, receivedAt)
    const samples = yield* history.samples(device.deviceId, id, { start: time, end: time, limit, order: "asc" })
    return samples.some((sample) => equalJson(sample.value, value))
  }
)

/** A value with its own time, or with that of the message. */
const timed = (raw: Json, receivedAt: number): { readonly value: Json; readonly time: number } => {
  if (!Predicate.isObject(raw) || !Predicate.hasProperty(raw, "value")) return { value: raw, time: receivedAt }
  const { time, value } = raw as { readonly time?: unknown; readonly value: Json }
  return { value, time: typeof time === "number" && Number.isInteger(time) ? time : receivedAt }
}
