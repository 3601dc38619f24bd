/**
 * The methods with which a device reads and removes its desired values
 * (docs/protocol/shadow.md).
 */
import { Predicate, Result } from "effect"
import type { Json } from "../../kernel/Json.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { fieldError, success, tooManyDesired } from "../DeviceReply.ts"

/** Properties in one message. */
const maxProperties = 200

const desiredGet = DeviceMethod.update({
  name: "thing.property.desired.get",
  decode: ({ params }) => {
    if (!Array.isArray(params) || !params.every(Predicate.isString)) {
      return Result.fail(fieldError("params", "expected an array of properties"))
    }
    return params.length > maxProperties
      ? Result.fail(tooManyDesired)
      : Result.succeed(params as ReadonlyArray<string>)
  },
  update: (ids, { draft: { desired } }) =>
    success(Object.fromEntries(
      ids.filter((id) => Object.hasOwn(desired, id)).map((id): [string, Json] => {
        const { value, version = 1 } = desired[id]!
        return [id, { value, version }]
      })
    ))
})

/** Returns the version that a value must have to be removed, 0: any; undefined: it is no number. */
const versionIn = (condition: Json): number | undefined => {
  const version = Predicate.hasProperty(condition, "version") ? condition.version ?? 0 : 0
  return typeof version === "number" ? version : undefined
}

/**
 * The params are an object from property to `{version}`. A desired value of
 * another version stays; without a version any is removed.
 */
const desiredDelete = DeviceMethod.update({
  name: "thing.property.desired.delete",
  decode: ({ params }) => {
    if (!Predicate.isObject(params)) {
      return Result.fail(fieldError("params", "expected an object from property to {version}"))
    }
    const conditions = Object.entries(params as Readonly<Record<string, Json>>)
    if (conditions.length > maxProperties) return Result.fail(tooManyDesired)
    const wanted: Array<readonly [id: string, version: number]> = []
    for (const [id, condition] of conditions) {
      const version = versionIn(condition)
      if (version === undefined) return Result.fail(fieldError("version", "expected a number"))
      wanted.push([id, version])
    }
    return Result.succeed(wanted)
  },
  update: (wanted, { draft }, { receivedAt }) => {
    const matching = wanted.filter(([id, version]) => {
      const entry = Object.hasOwn(draft.desired, id) ? draft.desired[id] : undefined
      return entry !== undefined && (version === 0 || version === (entry.version ?? 1))
    })
    for (const [id] of matching) draft.remove("desired", id)
    if (matching.length > 0) draft.accept(receivedAt)
    return success({})
  }
})

export const methods = [desiredGet, desiredDelete]
