/**
 * What reading and writing of the form `sdf` share: members that the format does
 * not have, which stand as JSON text in `$comment`, and units.
 */
import { Predicate } from "effect"
import type { Members } from "./Document.ts"

/** Degrees Celsius: the unit of SenML, which SDF uses, and the unit of a model. */
export const celsius = { sdf: "Cel", model: "°C" }

/** Writes the members that are not undefined to `$comment`; without effect if there are none. */
export const writeComment = (rest: Members): Members => {
  const members = Object.entries(rest).filter(([, value]) => value !== undefined)
  return members.length === 0 ? {} : { $comment: JSON.stringify(Object.fromEntries(members)) }
}

/** Reads the members in `$comment`: JSON, or `name=value` pairs. */
export const readComment = (value: unknown): Members => {
  if (typeof value !== "string") return {}
  try {
    const members: unknown = JSON.parse(value)
    return Predicate.isObject(members) ? members as Members : {}
  } catch {
    return Object.fromEntries(
      value.split(/[;,]\s*/).flatMap((pair) => {
        const [name, text] = pair.split("=")
        return name === undefined || text === undefined ? [] : [[name.trim(), text.trim()]]
      })
    )
  }
}
