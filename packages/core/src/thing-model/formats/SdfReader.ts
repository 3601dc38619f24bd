/**
 * Reads the form `sdf` of a thing model: Semantic Definition Format, RFC 9880
 * (docs/protocol/thing-models.md).
 */
import { Predicate } from "effect"
import type { ThingModel } from "../ThingModel.ts"
import { Document, type Members, type Path } from "./Document.ts"
import { isUsableId } from "./Elements.ts"
import * as Metadata from "./Metadata.ts"
import { celsius, readComment } from "./SdfVocabulary.ts"

/** The length of a text without `maxLength`, bytes. */
const defaultTextLength = 2048
/** Types inside each other. Valid models need fewer; `Metadata` refuses what nests too deeply for its type. */
const maxDepth = 6
/** References that lead from one to the next, at most. */
const maxReferences = 32
/** Things inside each other, at most. */
const maxThings = 16
/** Definitions that are read, at most. A definition counts each time that a reference leads to it. */
const maxDefinitions = 50_000
/** Characters of the definitions that references lead to, at most. A definition counts each time. */
const maxReferredSize = 4_194_304
const maxNameLength = 30

/**
 * Reads the only object of a document. Changes names that cannot be ids, with a
 * warning for each. Adds the issues to `document`.
 */
export const read = (
  document: Document,
  value: unknown
): { readonly model: ThingModel; readonly warnings: ReadonlyArray<string> } => {
  const root = document.members(value, []) ?? {}
  const found = findObject(document, root)
  if (found === undefined) return { model: { properties: [], events: [], services: [] }, warnings: [] }
  const reader = new Reader(document, root, found)
  const metadata = reader.metadata()
  const inner = new Document()
  const model = Metadata.read(inner, metadata)
  for (const { message, path } of inner.issues) document.refuse(reader.origin(path), message)
  return { model, warnings: reader.warnings }
}

interface Place {
  readonly members: Members
  readonly path: Path
}

/** Finds the only `sdfObject` of the document, at the top or inside the only `sdfThing`. */
const findObject = (document: Document, root: Members, path: Path = []): Place | undefined => {
  const objects = Object.entries(document.members(root["sdfObject"] ?? {}, [...path, "sdfObject"]) ?? {})
  const things = Object.entries(document.members(root["sdfThing"] ?? {}, [...path, "sdfThing"]) ?? {})
  const [object] = objects
  const [thing] = things
  if (path.length > 2 * maxThings) return document.refuse(path.slice(0, 4), "nested too deeply")
  if (objects.length + things.length > 1) {
    return document.refuse(path, "expected one sdfObject: a product has one thing model")
  }
  if (object !== undefined) {
    const at = [...path, "sdfObject", object[0]]
    const members = document.members(object[1], at)
    return members === undefined ? undefined : { members, path: at }
  }
  if (thing !== undefined) {
    const at = [...path, "sdfThing", thing[0]]
    const members = document.members(thing[1], at)
    return members === undefined ? undefined : findObject(document, members, at)
  }
  return path.length === 0 && !("sdfObject" in root) && !("sdfThing" in root) && "info" in root
    ? undefined
    : document.refuse([...path, "sdfObject"], "expected one object")
}

/** Name in the metadata form to name in this form. */
const sdfNames: Readonly<Record<string, string>> = {
  min: "minimum",
  max: "maximum",
  step: "multipleOf",
  length: "maxLength",
  size: "maxItems",
  name: "label",
  desc: "description",
  outputData: "sdfOutputData",
  inputData: "sdfInputData"
}

const lists = [
  { from: "sdfProperty", to: "properties" },
  { from: "sdfEvent", to: "events" },
  { from: "sdfAction", to: "services" }
] as const

class Reader {
  readonly warnings: Array<string> = []
  readonly #document: Document
  readonly #root: Members
  readonly #object: Place
  /** The names of the elements of each list of the metadata form. */
  readonly #names: Record<string, ReadonlyArray<string>> = {}
  #depth = 0
  #definitions = 0
  #referredSize = 0

  constructor(document: Document, root: Members, object: Place) {
    this.#document = document
    this.#root = root
    this.#object = object
  }

  /** Returns the object in the metadata form, unchecked. */
  metadata(): Members {
    const { members, path } = this.#object
    const required = new Set(
      this.#document.list(members["sdfRequired"], [...path, "sdfRequired"]).map((pointer) => String(pointer))
    )
    const prefix = `#/${path.map((step) => escapePointer(String(step))).join("/")}`
    return Object.fromEntries(lists.map(({ from, to }) => {
      const elements = this.#document.members(members[from] ?? {}, [...path, from]) ?? {}
      this.#names[to] = Object.keys(elements)
      return [
        to,
        Object.entries(elements).map(([name, element]) => {
          const at = [...path, from, name]
          const resolved = this.#resolve(element, at)
          const isRequired = required.has(`${prefix}/${from}/${escapePointer(name)}`) ||
            (Array.isArray(resolved["sdfRequired"]) && resolved["sdfRequired"].includes(true))
          return { ...this.#common(name, resolved, at), required: isRequired, ...this.#element(from, resolved, at) }
        })
      ]
    }))
  }

  /** Returns the path in this form for a path in the metadata form. */
  origin(path: Path): Path {
    const [list, position, ...rest] = path
    const { from } = lists.find(({ to }) => to === list) ?? {}
    if (from === undefined) return this.#object.path
    const name = this.#names[String(list)]?.[Number(position)]
    return [
      ...this.#object.path,
      from,
      ...name === undefined ? [] : [name],
      ...rest.filter((step) => step !== "dataType").map((step) => sdfNames[step] ?? step)
    ]
  }

  #element(from: typeof lists[number]["from"], members: Members, path: Path): Members {
    const { callType, type } = readComment(members["$comment"])
    switch (from) {
      case "sdfProperty":
        return {
          accessMode: members["readable"] === false ? "w" : members["writable"] === false ? "r" : "rw",
          dataType: this.#dataType(members, path)
        }
      case "sdfEvent":
        return {
          ...type === undefined ? {} : { eventType: type },
          outputData: this.#fields(members["sdfOutputData"], [...path, "sdfOutputData"])
        }
      case "sdfAction":
        return {
          ...callType === undefined ? {} : { callType },
          inputData: this.#fields(members["sdfInputData"], [...path, "sdfInputData"]),
          outputData: this.#fields(members["sdfOutputData"], [...path, "sdfOutputData"])
        }
    }
  }

  #common(name: string, members: Members, path: Path): Members {
    const { standard } = readComment(members["$comment"])
    return {
      id: this.#id(name, path),
      name: members["label"] ?? name.slice(0, maxNameLength),
      desc: members["description"],
      ...standard === undefined ? {} : { standard }
    }
  }

  #id(name: string, path: Path): string {
    if (isUsableId(name)) return name
    const cleaned = name.replaceAll(/\W/g, "_").slice(0, 48)
    const id = isUsableId(cleaned) ? cleaned : `${cleaned}_`
    this.warnings.push(`${path.join(".")}: the name cannot be an identifier; it is ${id} in the model`)
    return id
  }

  /** Returns the members of an object as fields. A definition of another type becomes the only field, `data`. */
  #fields(value: unknown, path: Path): ReadonlyArray<Members> {
    if (value === undefined) return []
    const members = this.#resolve(value, path)
    if (members["type"] !== "object" && !("properties" in members)) {
      return [{ id: "data", name: members["label"] ?? "data", dataType: this.#dataType(members, path) }]
    }
    const properties = this.#document.members(members["properties"] ?? {}, [...path, "properties"]) ?? {}
    return Object.entries(properties).map(([name, property]) => {
      const at = [...path, "properties", name]
      const resolved = this.#resolve(property, at)
      const { id, name: label } = this.#common(name, resolved, at)
      return { id, name: label, dataType: this.#dataType(resolved, at) }
    })
  }

  #dataType(members: Members, path: Path): Members | undefined {
    if (this.#depth >= maxDepth) return this.#document.refuse(path, "nested too deeply")
    this.#depth++
    try {
      return this.#typeOf(members, path)
    } finally {
      this.#depth--
    }
  }

  #typeOf(members: Members, path: Path): Members | undefined {
    const rest = readComment(members["$comment"])
    const choices = this.#choices(members, path)
    if (choices !== undefined) return { type: "enum", specs: rest["specs"] ?? choices }
    switch (members["type"]) {
      case "integer":
      case "number": {
        if (members["sdfType"] === "unix-time") return { type: "date" }
        const type = members["type"] === "integer" ? "int" : rest["type"] === "float" ? "float" : "double"
        const { unit } = members
        return {
          type,
          min: members["minimum"] ?? within(members["exclusiveMinimum"], type, 1),
          max: members["maximum"] ?? within(members["exclusiveMaximum"], type, -1),
          step: rest["step"] ?? members["multipleOf"],
          unit: rest["unit"] ?? (unit === celsius.sdf ? celsius.model : unit),
          unitName: rest["unitName"]
        }
      }
      case "string":
        return members["format"] === "date-time" || members["format"] === "date"
          ? { type: "date" }
          : { type: "text", length: members["maxLength"] ?? defaultTextLength }
      case "boolean":
        return { type: "bool", specs: rest["specs"] ?? { 0: "off", 1: "on" } }
      case "object":
        return { type: "struct", specs: this.#fields(members, path) }
      case "array": {
        const items = this.#dataType(this.#resolve(members["items"] ?? {}, [...path, "items"]), [...path, "items"])
        return { ...items, type: "array", size: members["maxItems"] ?? 512, elementType: items?.["type"] }
      }
      default:
        return this.#document.refuse(
          [...path, "type"],
          "expected one of number, string, boolean, integer, array, object"
        )
    }
  }

  /** Returns number to label for a choice among constants or an enumeration of texts; undefined for other definitions. */
  #choices(members: Members, path: Path): Readonly<Record<string, string>> | undefined {
    if (Array.isArray(members["enum"])) {
      return Object.fromEntries(members["enum"].map((label, i) => [i, String(label)]))
    }
    if (members["sdfChoice"] === undefined) return undefined
    const choices = Object.entries(this.#document.members(members["sdfChoice"], [...path, "sdfChoice"]) ?? {})
    const constants = choices.map(([, choice]) => Predicate.isObject(choice) ? (choice as Members)["const"] : undefined)
    const numbered = constants.every((constant) => Number.isInteger(constant)) &&
      new Set(constants).size === constants.length
    return Object.fromEntries(choices.map(([label], i) => [numbered ? String(constants[i]) : i, label]))
  }

  /** Returns the definition, merged over the definition that it refers to. */
  #resolve(value: unknown, path: Path, seen: ReadonlyArray<string> = []): Members {
    const members = this.#document.members(value, path) ?? {}
    if (++this.#definitions > maxDefinitions) {
      if (this.#definitions === maxDefinitions + 1) {
        this.#document.refuse(path, `expected at most ${maxDefinitions} definitions, with those that are referred to`)
      }
      return {}
    }
    const reference = members["sdfRef"]
    if (reference === undefined) return members
    if (seen.length > maxReferences) {
      this.#document.refuse([...path, "sdfRef"], `expected at most ${maxReferences} references in a row`)
      return members
    }
    if (typeof reference !== "string" || !reference.startsWith("#/")) {
      this.#document.refuse([...path, "sdfRef"], "expected a pointer into this document, such as #/sdfData/name")
      return members
    }
    const target = seen.includes(reference) ? undefined : this.#target(reference)
    if (target === undefined) {
      const problem = seen.includes(reference) ? "refers to itself" : "does not exist in this document"
      this.#document.refuse([...path, "sdfRef"], `${reference} ${problem}`)
      return members
    }
    if (this.#referredSize <= maxReferredSize) this.#referredSize += sizeOf(target)
    if (this.#referredSize > maxReferredSize) {
      this.#document.refuse(path, `expected at most ${maxReferredSize} characters of definitions that are referred to`)
      return {}
    }
    const { sdfRef: _, ...own } = members
    return mergePatch(this.#resolve(target, path, [...seen, reference]), own) as Members
  }

  #target(pointer: string): unknown {
    return pointer.slice(2).split("/").reduce<unknown>((value, step) => {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~")
      return Predicate.isObject(value) && Object.hasOwn(value, name) ? (value as Members)[name] : undefined
    }, this.#root)
  }
}

/** Returns the nearest value inside an exclusive bound; for real numbers, the bound itself. */
const within = (bound: unknown, type: string, inside: number): unknown =>
  type === "int" && typeof bound === "number" ? bound + inside : bound

const escapePointer = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1")

/** About how many characters the value has as JSON. */
const sizeOf = (value: unknown, depth = 0): number => {
  if (typeof value === "string") return value.length + 2
  // Reading refuses deeper definitions.
  if (typeof value !== "object" || value === null || depth > 4 * maxDepth) return 1
  return Object.entries(value).reduce((size, [name, member]) => size + name.length + sizeOf(member, depth + 1), 2)
}

/** JSON Merge Patch, RFC 7396. */
const mergePatch = (target: unknown, patch: unknown, depth = 0): unknown => {
  // Reading refuses deeper definitions.
  if (!Predicate.isObject(patch) || depth > 4 * maxDepth) return patch
  const merged: Record<string, unknown> = Predicate.isObject(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name]
    else merged[name] = mergePatch(merged[name], value, depth + 1)
  }
  return merged
}
