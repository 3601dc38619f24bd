/**
 * A device asks for the values that are desired of it, and takes them off
 * (alink-facts, section 3.7).
 */
import { Predicate } from "effect"
import type { Json } from "../kernel/Json.ts"
import { type DeviceReply, parameterError, success, tooManyDesired } from "./DeviceReply.ts"
import type { Step } from "./DeviceState.ts"

const maxProperties = 200

/** `thing.property.desired.get`: an array of properties. */
export const desiredGet = (params: unknown): Step | DeviceReply => {
  if (!Array.isArray(params) || !params.every(Predicate.isString)) {
    return parameterError("params: expected an array of properties")
  }
  if (params.length > maxProperties) return tooManyDesired
  return ({ draft: { desired } }) =>
    success(Object.fromEntries(
      (params as ReadonlyArray<string>).filter((id) => Object.hasOwn(desired, id)).map((id): [string, Json] => {
        const { value, version = 1 } = desired[id]!
        return [id, { value, version }]
      })
    ))
}

/** `thing.property.desired.delete`: an object from property to `{version}`; without version any is taken off. */
export const desiredDelete = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!Predicate.isObject(params)) return parameterError("params: expected an object from property to {version}")
  const wanted = Object.entries(params as Readonly<Record<string, Json>>)
  if (wanted.length > maxProperties) return tooManyDesired
  return ({ draft }) => {
    const matching = wanted.filter(([id, condition]) => {
      const entry = Object.hasOwn(draft.desired, id) ? draft.desired[id] : undefined
      const version = Predicate.hasProperty(condition, "version") ? condition.version : undefined
      return entry !== undefined && (typeof version !== "number" || version === 0 || version === (entry.version ?? 1))
    })
    for (const [id] of matching) draft.remove("desired", id)
    if (matching.length > 0) draft.accept(receivedAt)
    return success({})
  }
}
