/**
 * Files of devices: CSV with a line of names, or JSON objects in lines.
 */
import { DeviceDraft } from "@device-cloud/core"
import { Option, Result, Schema } from "effect"

/** One device of a file. */
export interface DeviceLine {
  /** Of the file, from 1. */
  readonly line: number
  readonly product_key: string
  readonly device_name: string
  /** Empty: the file does not say one. */
  readonly device_secret: string
  readonly nickname: string | undefined
  readonly tags: Readonly<Record<string, string>> | undefined
}

/** A line that is no device. */
export interface RefusedLine {
  readonly line: number
  readonly device_name: string
  readonly reason: string
}

/** How the file is written. */
export type DeviceFileFormat = "csv" | "ndjson"

/** What the file of that name is written as, and what it begins with. */
export const formatOf = (file: string, text: string): DeviceFileFormat =>
  /\.(ndjson|jsonl)$/.test(file) || text.trimStart().startsWith("{") ? "ndjson" : "csv"

const Tags = Schema.Record(Schema.String, Schema.String)
const Row = Schema.Struct({
  product_key: Schema.optional(Schema.String),
  device_name: Schema.String,
  device_secret: Schema.optional(Schema.String),
  nickname: Schema.optional(Schema.String),
  tags: Schema.optional(Schema.Union([Tags, Schema.Literal(""), Schema.fromJsonString(Tags)]))
})
const decodeName = Schema.decodeUnknownResult(DeviceDraft.fields.deviceName)
const decodeRow = Schema.decodeUnknownOption(Row)

/** Reads a file. `product` is that of lines that name none. */
export const parse = (
  text: string,
  format: DeviceFileFormat,
  product: string | undefined
): { readonly devices: ReadonlyArray<DeviceLine>; readonly refused: ReadonlyArray<RefusedLine> } => {
  const devices: Array<DeviceLine> = []
  const refused: Array<RefusedLine> = []
  const seen = new Set<string>()
  for (const { fault, line, value } of format === "csv" ? csvRows(text) : jsonRows(text)) {
    const refuse = (reason: string) => {
      const name = typeof value === "object" && value !== null && "device_name" in value ? value.device_name : ""
      refused.push({ line, device_name: String(name), reason })
    }
    if (fault !== undefined) {
      refuse(fault)
      continue
    }
    const row = Option.getOrUndefined(decodeRow(value))
    if (row === undefined) {
      refuse("expected device_name, and perhaps product_key, nickname, tags (an object of texts)")
      continue
    }
    const { device_name, device_secret = "", nickname, product_key = "", tags } = row
    const name = decodeName(device_name)
    const productKey = product_key === "" ? product : product_key
    if (productKey === undefined) refuse("product_key: expected one, here or as --product")
    else if (device_name === "") refuse("device_name: expected one, so that a second run finds the device")
    else if (Result.isFailure(name)) refuse(`device_name: ${name.failure.message}`)
    else if (seen.has(`${productKey}/${device_name}`)) refuse("device_name: the file has it before")
    else {
      seen.add(`${productKey}/${device_name}`)
      devices.push({
        line,
        product_key: productKey,
        device_name,
        device_secret,
        nickname: nickname === "" ? undefined : nickname,
        tags: tags === "" ? undefined : tags
      })
    }
  }
  return { devices, refused }
}

/** One line of CSV. */
export const csvLine = (values: ReadonlyArray<string>): string =>
  values.map((value) => /[",\r\n]/.test(value) ? `"${value.replaceAll("\"", "\"\"")}"` : value).join(",")

interface Read {
  readonly line: number
  readonly value: unknown
  /** Why the row cannot be one of a device. */
  readonly fault?: string
}

const jsonRows = (text: string): ReadonlyArray<Read> =>
  text.split("\n").flatMap((row, i) => {
    if (row.trim() === "") return []
    try {
      return [{ line: i + 1, value: JSON.parse(row) as unknown }]
    } catch {
      return [{ line: i + 1, value: row }]
    }
  })

/** The rows below the line of names, each as an object. */
const csvRows = (text: string): ReadonlyArray<Read> => {
  const [head, ...rows] = csvCells(text.replace(/^\uFEFF/, ""))
  const names = head?.cells.map((name) => name.trim()) ?? []
  const twice = Object.keys(Row.fields).find((name) => names.indexOf(name) !== names.lastIndexOf(name))
  // Which of two columns counts, nobody knows, and a file that a program has left empty is none of no devices.
  const fault = twice !== undefined
    ? `the line of names has ${twice} twice`
    : names.includes("device_name")
    ? undefined
    : "expected a line of names with device_name"
  if (fault !== undefined) return [{ line: head?.line ?? 1, value: undefined, fault }]
  return rows.flatMap(({ cells, isTorn, line }) => {
    if (cells.length === 1 && cells[0] === "") return []
    const value = Object.fromEntries(names.map((name, i) => [name, cells[i] ?? ""]))
    const fault = isTorn
      ? "a cell that begins with a quote must end with one, and quotes between them are doubled"
      : cells.slice(names.length).some((cell) => cell !== "")
      ? "more cells than the line of names has: a cell with a comma needs quotes"
      : undefined
    return [{ line, value, ...fault === undefined ? {} : { fault } }]
  })
}

/** A row of CSV. */
export interface CsvRow {
  readonly line: number
  readonly cells: Array<string>
  /** A cell begins with a quote, which does not enclose it. */
  isTorn: boolean
}

/** The rows of a text (RFC 4180). */
export const csvCells = (text: string): ReadonlyArray<CsvRow> => {
  const rows: Array<CsvRow> = []
  let row: CsvRow | undefined
  let line = 1
  // A cell, and what ends it: a comma, the end of a line, or that of the file. Quotes within a plain cell are text.
  for (const [, quoted, plain = "", end] of text.matchAll(/(?: *"((?:[^"]|"")*)" *|([^,\r\n]*))(,|\r\n?|\n|$)/g)) {
    if (row === undefined && quoted === undefined && plain === "" && end === "") break
    row ??= { line, cells: [], isTorn: false }
    row.cells.push(quoted === undefined ? plain : quoted.replaceAll("\"\"", "\""))
    if (/^ *"/.test(plain)) row.isTorn = true
    line += (quoted ?? "").split("\n").length - 1
    if (end === ",") continue
    rows.push(row)
    row = undefined
    line++
    if (end === "") break
  }
  return rows
}
