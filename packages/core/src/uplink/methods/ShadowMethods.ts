/**
 * The method with which a device reads and changes its shadow
 * (docs/protocol/shadow.md, which also has the error codes).
 */
import { Predicate, Result } from "effect"
import type { Json } from "../../kernel/Json.ts"
import { maxAttributes, type ShadowDraft } from "../../shadow/Shadow.ts"
import { shadowDocument } from "../../shadow/ShadowDocument.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { type DeviceReply, failure, success } from "../DeviceReply.ts"
import type { DeviceState } from "../DeviceState.ts"

type Members = Readonly<Record<string, Json>>

const isMembers = (value: unknown): value is Members => Predicate.isObject(value)

/** Devices write `null` or `"null"` for what is to be deleted. */
const isNothing = (value: Json | undefined): boolean => value === null || value === "null"

/** The highest version that a device may set: later versions are still exact numbers. */
const maxVersion = 2 ** 52

/** Decodes a message with the method `update`, `get` or `delete` to a change of the state. */
const decode = (params: unknown, receivedAt: number): Result.Result<DeviceMethod.Update, DeviceReply> => {
  if (!isMembers(params)) return Result.fail(failure(400, "Invalid JSON."))
  if (Object.keys(params).length === 0) return Result.fail(failure(407, "The document is empty."))
  const { method, state, version } = params
  if (method === undefined) return Result.fail(failure(401, "The method is missing."))
  if (method === "get") {
    return Result.succeed(({ draft }) => success({ version: draft.version, ...shadowDocument(draft) }))
  }
  if (method !== "update" && method !== "delete") {
    return Result.fail(failure(406, "The method is none of update, get, delete."))
  }
  if (typeof version !== "number" || !Number.isInteger(version) || version < -1 || version > maxVersion) {
    return Result.fail(failure(403, "The version is no valid number."))
  }
  if (version === -1) return Result.succeed(clear(receivedAt))
  if (!isMembers(state)) return Result.fail(failure(402, "The state is missing."))
  const change = method === "update" ? update(state, receivedAt) : remove(state)
  if ("code" in change) return Result.fail(change)
  return Result.succeed((device) => {
    const stored = device.draft.version
    if (version <= stored) return { ...failure(409, "Version conflict."), data: { version: stored } }
    const refused = change(device, version)
    if (refused !== undefined) return refused
    device.draft.accept(receivedAt, version)
    return success({ version })
  })
}

const shadow = DeviceMethod.update({
  name: "thing.shadow",
  form: "shadow",
  action: "PostShadow",
  decode: ({ params, receivedAt }) => decode(params, receivedAt),
  update: (change, state) => change(state)
})

export const methods = [shadow]

/** Version -1 empties the shadow and sets its version to 0. */
const clear = (receivedAt: number): DeviceMethod.Update => ({ draft }) => {
  draft.clear("reported")
  draft.clear("desired")
  draft.accept(receivedAt, 0)
  return success({ version: 0 })
}

/** Changes the state; returns the reply that refuses the change, or undefined. */
type Change = (state: DeviceState, version: number) => DeviceReply | undefined

const update = ({ desired, reported }: Members, receivedAt: number): Change | DeviceReply => {
  if (reported === undefined && desired === undefined) return failure(404, "Reported is missing.")
  if (reported !== undefined && !isMembers(reported)) return failure(404, "Reported is no object.")
  const values = Object.entries(reported ?? {}).filter(([id]) => id !== "__proto__")
  if (reported !== undefined && values.length === 0) return failure(405, "Reported is empty.")
  return (state, version) => {
    const { draft } = state
    const before = draft.mark()
    removeProperties(draft, "desired", desired)
    for (const [id, value] of values) if (isNothing(value)) draft.remove("reported", id)
    const kept = values.filter(([, value]) => !isNothing(value))
    if (!draft.hasRoomFor(kept.map(([id]) => id))) {
      draft.rollBack(before)
      return failure(408, `More than ${maxAttributes} attributes that the thing model does not have.`)
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
    removeProperties(draft, "reported", reported)
    removeProperties(draft, "desired", desired)
    return undefined
  }
}

/** Removes all properties of a side if `what` is `null`, or those whose member is `null`. */
const removeProperties = (draft: ShadowDraft, side: "reported" | "desired", what: Json | undefined): void => {
  if (isNothing(what)) draft.clear(side)
  if (!isMembers(what)) return
  for (const [id, value] of Object.entries(what)) if (isNothing(value)) draft.remove(side, id)
}
