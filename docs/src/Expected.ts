/** What an example shows, compared with what came. */
type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [member: string]: Json }

/** Members that are different each time. Any value of the same type stands for them. */
const own = /^(id|.*_id|.*Id|.*_key|key|.*_secret|timestamp|time|.*_at|.*Time|url|cursor|version|random|ip|expires.*)$/

const isDate = (value: Json) => typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-][\d:]+)$/.test(value)

const kind = (value: Json): string => value === null ? "null" : Array.isArray(value) ? "array" : typeof value

/**
 * Returns what does not fit, as paths with sentences. All that is shown must have come, and nothing else, save for
 * objects with a member `"…"`, which stands for the rest. A text with `…` shows its beginning and its end.
 *
 * @param shape values may be others of the same type, lists have one item or more where one is shown,
 *   objects may be empty, and any value may be null
 */
export const differences = (shown: Json, came: Json, shape = false, path = ""): ReadonlyArray<string> => {
  const differs = [`${path || "it"} is ${JSON.stringify(came)}, not ${JSON.stringify(shown)}`]
  const member = /(\w+)$/.exec(path)?.[1] ?? ""
  if (typeof shown === "string" && shown.includes("…") && !shape && !own.test(member)) {
    const [begin = "", end = ""] = shown.split("…")
    return typeof came === "string" && came.startsWith(begin) && came.endsWith(end) ? [] : differs
  }
  if (shape && came === null) return []
  if (kind(shown) !== kind(came)) return own.test(member) && (shown === null || came === null) ? [] : differs
  if (Array.isArray(shown)) {
    const others = came as ReadonlyArray<Json>
    if (shape ? shown.length > 0 && others.length === 0 : shown.length !== others.length) return differs
    return others.flatMap((item: Json, index) =>
      shown.length === 0 ? [] : differences(shown[Math.min(index, shown.length - 1)]!, item, shape, `${path}[${index}]`)
    )
  }
  if (typeof shown === "object" && shown !== null) {
    const others = came as { readonly [member: string]: Json }
    const members = shown as { readonly [member: string]: Json }
    if (shape && Object.keys(others).length === 0) return []
    const missing = Object.keys(members).filter((name) => name !== "…" && !(name in others))
    const more = "…" in members ? [] : Object.keys(others).filter((name) => !(name in members))
    return [
      ...missing.map((name) => `${path}.${name} has not come`),
      ...more.map((name) => `${path}.${name} is not shown: ${JSON.stringify(others[name])}`),
      ...Object.keys(members).filter((name) => name in others)
        .flatMap((name) => differences(members[name]!, others[name]!, shape, `${path}.${name}`))
    ]
  }
  if (shape || shown === came || own.test(member)) return []
  if (isDate(shown)) return isDate(came) ? [] : differs
  return typeof shown === "number" && typeof came === "number" && shown >= 1e9 && came >= 1e9 ? [] : differs
}

/** A number, a word, white space, or a sign. */
const token = /\s+|-?\d+(?:\.\d+)?(?!\w)|\w+|[^\w\s]/g

/**
 * Whether a text is the one that is shown. `…` stands for any text.
 *
 * @param shape numbers stand for any others, words with digits for any words, white space for any
 */
export const fits = (shown: string, came: string, shape = false): boolean => {
  const literal = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
  const pattern = (text: string) =>
    text.replaceAll(token, (part) => {
      if (/^\s/.test(part)) return "\\s+"
      if (/^-?\d+(\.\d+)?$/.test(part)) return "-?\\d+(?:\\.\\d+)?"
      return /\d/.test(part) ? "[\\w-]+" : literal(part)
    })
  return new RegExp(`^${shown.trim().split(/\s*…\s*/).map(shape ? pattern : literal).join("[^]*")}$`).test(came.trim())
}
