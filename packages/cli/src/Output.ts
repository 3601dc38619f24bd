/**
 * What a command prints: a table, the members of a thing, or JSON, without
 * secrets unless they are asked for.
 */
import { Console, Effect, Stdio, Terminal } from "effect"
import { CliOutput } from "effect/cli"
import { csvCells, csvLine } from "./DeviceFile.ts"
import { Json, ShowSecret } from "./GlobalFlags.ts"

/** What stands in place of a secret, as in the responses to a viewer. */
export const masked = "********"

/** The members of responses that are secrets. */
const secretName = /^(key|password|private_key|network_key|app_key|ble_key)$|(^|_)secret$/

/** A value without its secrets. */
export const withoutSecrets = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutSecret(name, member)]))
}

const withoutSecret = (name: string, member: unknown): unknown => {
  if (typeof member === "string" && member !== "") {
    // `URL` is that of a webhook in a scene.
    return secretName.test(name) ? masked : name === "URL" ? hostOf(member) : member
  }
  return name === "webhook" && typeof member === "object" && member !== null && "url" in member
    ? { ...member, url: hostOf(String(member.url)) }
    : withoutSecrets(member)
}

/** The address of a webhook without what follows its host, which is often a secret. */
const hostOf = (url: string): string => URL.canParse(url) ? `${new URL(url).origin}/…` : masked

/** Prints a value as JSON; returns whether `--json` asks for that. */
export const json = Effect.fnUntraced(function*(value: unknown) {
  if (!(yield* Json)) return false
  yield* Console.log(JSON.stringify(yield* shown(value), null, 2))
  return true
})

/** Prints a value as JSON in one line; returns whether `--json` asks for that. */
export const jsonLine = Effect.fnUntraced(function*(value: unknown) {
  if (!(yield* Json)) return false
  yield* Console.log(JSON.stringify(yield* shown(value)))
  return true
})

/** Prints a response that is a text: of CSV, the columns that are secrets are masked. */
export const text = Effect.fnUntraced(function*(response: string) {
  const names = response.slice(0, response.indexOf("\n")).trimEnd().split(",")
  yield* Console.log(
    !(yield* ShowSecret) && names.some((name) => secretName.test(name))
      ? csvCells(response.trimEnd()).map(({ cells, line }) =>
        csvLine(line === 1 ? cells : cells.map((value, i) => secretName.test(names[i]!) ? masked : value))
      ).join("\r\n")
      : response.trimEnd()
  )
})

/** Prints things as a table of those columns; by default of the members that are short. */
export const table = Effect.fnUntraced(function*(
  items: ReadonlyArray<object>,
  columns: ReadonlyArray<string> = defaultColumns(items)
) {
  if (items.length === 0) return yield* Console.error("None.")
  const rows = (yield* shown(items) as Effect.Effect<ReadonlyArray<Readonly<Record<string, unknown>>>>)
    .map((item) => columns.map((column) => cell(item[column], column)))
  const head = columns.map((column) => column.replaceAll("_", " ").toUpperCase())
  const widths = yield* fitted(
    head.map((title, i) =>
      rows.reduce((width, row) => Math.max(width, CliOutput.displayWidth(row[i]!)), CliOutput.displayWidth(title))
    )
  )
  for (const row of [head, ...rows]) {
    yield* Console.log(row.map((text, i) => padded(text, widths[i]!)).join("  ").trimEnd())
  }
})

/** Prints the members of a thing, one in a line. */
export const record = Effect.fnUntraced(function*(thing: object) {
  const entries = flat((yield* shown(thing)) as object)
  const width = Math.max(0, ...entries.map(([name]) => name.length))
  for (const [name, value] of entries) {
    yield* Console.log(`${name.padEnd(width)}  ${cell(value, name)}`.trimEnd())
  }
})

/** Members, and members of members as `tags.room`. */
const flat = (thing: object): ReadonlyArray<readonly [string, unknown]> =>
  Object.entries(thing).flatMap(([name, value]) => {
    const title = name.replaceAll("_", " ")
    return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
      ? Object.entries(value).flatMap(([inner, of]) => flat({ [`${title}.${inner}`]: of }))
      : [[title, value] as const]
  })

/**
 * One value as text in a line. Control characters, which devices may send, do not
 * reach the terminal. A member `time` has Unix milliseconds.
 */
export const cell = (value: unknown, name = ""): string =>
  value === null || value === undefined
    ? ""
    : name === "time" && typeof value === "number"
    ? cell(new Date(value).toISOString())
    : typeof value === "string"
    ? visible(value.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d+Z$/, "$1 $2"))
    : visible(JSON.stringify(value))

const visible = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, (character) => JSON.stringify(character).slice(1, -1))

const shown = (value: unknown) => Effect.map(ShowSecret, (asked) => asked ? value : withoutSecrets(value))

const defaultColumns = (items: ReadonlyArray<object>): ReadonlyArray<string> =>
  Object.entries(items[0] ?? {}).flatMap(([name, value]) => typeof value === "object" && value !== null ? [] : [name])
    .slice(0, 7)

/** The widths of columns on this terminal: the widest become narrower. Elsewhere nothing is cut. */
const fitted = Effect.fnUntraced(function*(widths: ReadonlyArray<number>) {
  if (!(yield* (yield* Stdio.Stdio).stdoutIsTerminal)) return widths
  const columns = yield* (yield* Terminal.Terminal).columns
  const result = [...widths]
  let excess = result.reduce((sum, width) => sum + width + 2, -2) - columns
  while (excess > 0 && Math.max(...result) > 8) {
    const widest = result.indexOf(Math.max(...result))
    result[widest]!--
    excess--
  }
  return result
})

const padded = (text: string, width: number): string => {
  if (CliOutput.displayWidth(text) <= width) return text + " ".repeat(width - CliOutput.displayWidth(text))
  let cut = ""
  for (const character of text) {
    if (CliOutput.displayWidth(cut + character) >= width) break
    cut += character
  }
  return `${cut}…`
}
