/**
 * A device's own dealings with its shadow (alink-facts, section 6.1). Error
 * codes are those of that section.
 */
import { Predicate } from "effect"
import { type DeviceReply, failure, success } from "../uplink/DeviceReply.ts"
import type { DeviceState, Step } from "../uplink/DeviceState.ts"
import { maxAttributes, type Shadow, type ShadowDraft, type ShadowSide } from "./Shadow.ts"
import type { Json } from "../kernel/Json.ts"

type Members = Readonly<Record<string, Json>>

const isMembers = (value: unknown): value is Members => Predicate.isObject(value)

/** Both ways in which devices write that something is to be deleted. */
const isNothing = (value: Json | undefined): boolean => value === null || value === "null"

/** What a device may set; the versions of later changes still are exact numbers. */
const maxVersion = 2 ** 52

/** `method` is `update`, `get` or `delete`. */
export const shadowMessage = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!isMembers(params)) return failure(400, "Invalid JSON.")
  if (Object.keys(params).length === 0) return failure(407, "The document is empty.")
  const { method, state, version } = params
  if (method === undefined) return failure(401, "The method is missing.")
  if (method === "get") return ({ draft }) => success({ version: draft.version, ...shadowDocument(draft) })
  if (method !== "update" && method !== "delete") return failure(406, "The method is none of update, get, delete.")
  if (typeof version !== "number" || !Number.isInteger(version) || version < -1 || version > maxVersion) {
    return failure(403, "The version is no valid number.")
  }
  if (version === -1) return clear(receivedAt)
  if (!isMembers(state)) return failure(402, "The state is missing.")
  const change = method === "update" ? update(state, receivedAt) : remove(state)
  if ("code" in change) return change
  return (device) => {
    if (version <= device.draft.version) return failure(409, "Version conflict.")
    const refused = change(device, version)
    if (refused !== undefined) return refused
    device.draft.accept(receivedAt, version)
    return success({ version })
  }
}

/** Version -1 empties the shadow and starts again. */
const clear = (receivedAt: number): Step => ({ draft }) => {
  draft.clear("reported")
  draft.clear("desired")
  draft.accept(receivedAt, 0)
  return success({ version: 0 })
}

type Change = (state: DeviceState, version: number) => DeviceReply | undefined

const update = ({ desired, reported }: Members, receivedAt: number): Change | DeviceReply => {
  if (reported === undefined && desired === undefined) return failure(404, "Reported is missing.")
  if (reported !== undefined && !isMembers(reported)) return failure(404, "Reported is no object.")
  const values = Object.entries(reported ?? {}).filter(([id]) => id !== "__proto__")
  if (reported !== undefined && values.length === 0) return failure(405, "Reported is empty.")
  if (values.length > maxAttributes) return failure(408, `More than ${maxAttributes} attributes.`)
  return (state, version) => {
    const { draft } = state
    takeOff(draft, "desired", desired)
    for (const [id, value] of values) if (isNothing(value)) draft.remove("reported", id)
    const kept = values.filter(([, value]) => !isNothing(value))
    const fresh = kept.filter(([id]) => !Object.hasOwn(draft.reported, id)).length
    if (Object.keys(draft.reported).length + fresh > maxAttributes) {
      return failure(408, `More than ${maxAttributes} attributes.`)
    }
    if (kept.length > 0) {
      state.report(kept.map(([id, value]) => [id, { value, time: receivedAt }] as const), receivedAt, version)
    }
    return undefined
  }
}

const remove = ({ desired, reported }: Members): Change | DeviceReply => {
  if (reported === undefined && desired === undefined) return failure(404, "Reported is missing.")
  return ({ draft }) => {
    takeOff(draft, "reported", reported)
    takeOff(draft, "desired", desired)
    return undefined
  }
}

/** `"null"`: everything; an object: each member that is `"null"`. */
const takeOff = (draft: ShadowDraft, side: "reported" | "desired", what: Json | undefined): void => {
  if (isNothing(what)) draft.clear(side)
  if (!isMembers(what)) return
  for (const [id, value] of Object.entries(what)) if (isNothing(value)) draft.remove(side, id)
}

const seconds = (millis: number): number => Math.floor(millis / 1000)

const values = (side: ShadowSide) =>
  Object.fromEntries(Object.entries(side).map(([id, { value }]): [string, Json] => [id, value]))

const times = (side: ShadowSide) =>
  Object.fromEntries(Object.entries(side).map(([id, { time }]) => [id, { timestamp: seconds(time) }]))

/** State and metadata as devices and applications read them; times in Unix seconds. */
export const shadowDocument = ({ desired, reported }: Pick<Shadow, "desired" | "reported">) => ({
  state: { reported: values(reported), desired: values(desired) },
  metadata: { reported: times(reported), desired: times(desired) }
})

/** Tells a device what is desired of it. */
export const shadowControl = (shadow: Shadow) => ({
  method: "thing.shadow",
  params: { version: shadow.version, timestamp: seconds(shadow.updatedAt ?? 0), ...shadowDocument(shadow) }
})
