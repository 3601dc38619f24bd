/**
 * Reads and writes the forms `metadata` and `tsl`. Both have three lists of
 * elements; a {@link Dialect} says how their names differ
 * (docs/protocol/thing-models.md).
 */
import { Predicate } from "effect"
import { type DataType, type Field, int32, maxFloat } from "../DataType.ts"
import {
  type EventElement,
  maxElements,
  type PropertyElement,
  type ServiceElement,
  type ThingModel
} from "../ThingModel.ts"
import type { Document, Members, Path } from "./Document.ts"

/** How a form names members. */
export interface Dialect {
  /** The member that holds the identifier. */
  readonly id: "id" | "identifier"
  /** The member of an event that holds its type. */
  readonly eventType: "eventType" | "type"
  /** Whether the bounds of a type stand in the member `specs`, numbers as text. */
  readonly nestedSpecs: boolean
}

const maxIdLength = 50
const maxNameLength = 30
const maxDescLength = 2048
const maxUnitLength = 64
const maxTextBytes = 10_240
const maxArraySize = 512
const maxLabelLength = 128

/** Ids with another meaning in messages, and `__proto__`, which would change an object's prototype. */
const reservedIds = new Set(["set", "get", "post", "property", "event", "time", "value", "__proto__"])

/** Elements that follow from the properties. Reading skips them; writing adds them. */
const generated = { events: ["post"], services: ["set", "get"] }

/** Whether the text can be the id of an element: 1 to 50 letters, digits and `_`, and not reserved. */
export const isUsableId = (id: string): boolean => /^\w{1,50}$/.test(id) && !reservedIds.has(id)

/** Reads the three lists of `value`. Adds the issues to `document`. */
export const readModel = (document: Document, value: unknown, dialect: Dialect): ThingModel => {
  const model = document.members(value, []) ?? {}
  const elementsOf = (list: "properties" | "events" | "services", skipped: ReadonlyArray<string>) =>
    document.list(model[list], [list]).flatMap((element, i) => {
      const id = (element as Members | null)?.[dialect.id]
      return typeof id === "string" && skipped.includes(id) ? [] : [{ element, path: [list, i] }]
    })
  const properties = elementsOf("properties", [])
  const events = elementsOf("events", generated.events)
  const services = elementsOf("services", generated.services)
  const count = properties.length + events.length + services.length
  if (count > maxElements) {
    // To read what is refused anyway could take seconds.
    document.refuse([], `expected at most ${maxElements} elements, got ${count}`)
    return { properties: [], events: [], services: [] }
  }
  const read = {
    properties: properties.flatMap(({ element, path }) => readProperty(document, element, path, dialect) ?? []),
    events: events.flatMap(({ element, path }) => readEvent(document, element, path, dialect) ?? []),
    services: services.flatMap(({ element, path }) => readService(document, element, path, dialect) ?? [])
  }
  refuseRepeated(document, read, dialect)
  return read
}

const refuseRepeated = (document: Document, model: ThingModel, dialect: Dialect) => {
  const seen = new Set<string>()
  for (const list of ["properties", "events", "services"] as const) {
    for (const [i, { id }] of model[list].entries()) {
      if (id === "") continue
      if (seen.has(id)) document.refuse([list, i, dialect.id], `${id} is used more than once in the model`)
      seen.add(id)
    }
  }
}

const readId = (document: Document, members: Members, path: Path, dialect: Dialect): string => {
  const id = members[dialect.id]
  if (typeof id === "string" && isUsableId(id)) return id
  const message = typeof id === "string" && reservedIds.has(id)
    ? `${id} is reserved`
    : `expected 1 to ${maxIdLength} letters, digits and _`
  document.refuse([...path, dialect.id], message)
  return ""
}

const readCommon = (document: Document, members: Members, path: Path, dialect: Dialect) => ({
  id: readId(document, members, path, dialect),
  name: document.text(members["name"], [...path, "name"], maxNameLength),
  required: document.optionalBoolean(members["required"], [...path, "required"]),
  standard: document.optionalBoolean(members["standard"], [...path, "standard"]),
  desc: document.optionalText(members["desc"], [...path, "desc"], maxDescLength)
})

export const readProperty = (
  document: Document,
  value: unknown,
  path: Path,
  dialect: Dialect
): PropertyElement | undefined => {
  const members = document.members(value, path)
  if (members === undefined) return undefined
  return {
    ...readCommon(document, members, path, dialect),
    accessMode: document.oneOf(members["accessMode"], [...path, "accessMode"], ["r", "w", "rw"]),
    dataType: readDataType(document, members["dataType"], [...path, "dataType"], dialect)
  }
}

export const readEvent = (
  document: Document,
  value: unknown,
  path: Path,
  dialect: Dialect
): EventElement | undefined => {
  const members = document.members(value, path)
  if (members === undefined) return undefined
  const { eventType } = dialect
  return {
    ...readCommon(document, members, path, dialect),
    eventType: document.oneOf(members[eventType], [...path, eventType], ["info", "alert", "error"], "info"),
    outputData: readFields(document, members["outputData"], [...path, "outputData"], dialect)
  }
}

export const readService = (
  document: Document,
  value: unknown,
  path: Path,
  dialect: Dialect
): ServiceElement | undefined => {
  const members = document.members(value, path)
  if (members === undefined) return undefined
  return {
    ...readCommon(document, members, path, dialect),
    callType: document.oneOf(members["callType"], [...path, "callType"], ["async", "sync"], "async"),
    inputData: readFields(document, members["inputData"], [...path, "inputData"], dialect),
    outputData: readFields(document, members["outputData"], [...path, "outputData"], dialect)
  }
}

const readFields = (
  document: Document,
  value: unknown,
  path: Path,
  dialect: Dialect,
  types: ReadonlyArray<DataType["type"]> = allTypes
): ReadonlyArray<Field> => {
  const seen = new Set<string>()
  return document.list(value, path).flatMap((element, i) => {
    const members = document.members(element, [...path, i])
    if (members === undefined) return []
    const id = readId(document, members, [...path, i], dialect)
    if (id !== "" && seen.has(id)) document.refuse([...path, i, dialect.id], `${id} is used more than once`)
    seen.add(id)
    return [{
      id,
      name: document.text(members["name"], [...path, i, "name"], maxNameLength),
      dataType: readDataType(document, members["dataType"], [...path, i, "dataType"], dialect, types)
    }]
  })
}

const allTypes = ["int", "float", "double", "bool", "enum", "text", "date", "struct", "array"] as const
const memberTypes = ["int", "float", "double", "bool", "enum", "text", "date"] as const
const itemTypes = ["int", "float", "double", "text", "struct"] as const

/** The labels of a `bool` that has none. */
const boolLabels = { 0: "false", 1: "true" }

/** Whether a member is left out, or is the empty value that generated clients send for that. */
const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (Predicate.isObject(value) && Object.keys(value).length === 0)

/** Takes the place of a type that could not be read. */
const unreadable: DataType = { type: "date" }

const readDataType = (
  document: Document,
  value: unknown,
  path: Path,
  dialect: Dialect,
  types: ReadonlyArray<DataType["type"]> = allTypes
): DataType => {
  const members = document.members(value, path)
  if (members === undefined) return unreadable
  const type = members["type"]
  if (!types.includes(type as DataType["type"])) {
    document.refuse([...path, "type"], `expected one of ${types.join(", ")}`)
    return unreadable
  }
  const specsPath = [...path, "specs"]
  switch (type as DataType["type"]) {
    case "int":
    case "float":
    case "double":
      return readNumberType(document, members, path, dialect, type as "int" | "float" | "double")
    case "bool":
      return {
        type: "bool",
        specs: isEmpty(members["specs"]) ? boolLabels : readLabels(document, members["specs"], specsPath, "bool")
      }
    case "enum":
      return { type: "enum", specs: readLabels(document, members["specs"], specsPath, "enum") }
    case "date":
      return { type: "date" }
    case "struct": {
      const specs = readFields(document, members["specs"], specsPath, dialect, memberTypes)
      if (specs.length === 0) document.refuse(specsPath, "expected at least one member")
      return { type: "struct", specs }
    }
    case "text": {
      const bounds = readBounds(document, members, path, dialect)
      const length = document.optionalNumber(bounds.members["length"], [...bounds.path, "length"], {
        min: 1,
        max: maxTextBytes,
        whole: true
      })
      return { type: "text", length: length ?? maxTextBytes }
    }
    case "array": {
      const bounds = readBounds(document, members, path, dialect)
      const size = document.optionalNumber(bounds.members["size"], [...bounds.path, "size"], {
        min: 1,
        max: maxArraySize,
        whole: true
      })
      const item = dialect.nestedSpecs
        ? readDataType(document, bounds.members["item"], [...bounds.path, "item"], dialect, itemTypes)
        : readElementType(document, members, path, dialect)
      return { type: "array", size: size ?? maxArraySize, item }
    }
  }
}

/** Reads the type of the items from `elementType` and the bounds beside it. */
const readElementType = (document: Document, members: Members, path: Path, dialect: Dialect): DataType => {
  const { elementType } = members
  if (!itemTypes.includes(elementType as typeof itemTypes[number])) {
    document.refuse([...path, "elementType"], `expected one of ${itemTypes.join(", ")}`)
    return unreadable
  }
  return readDataType(document, { ...members, type: elementType }, path, dialect)
}

const readBounds = (document: Document, members: Members, path: Path, { nestedSpecs }: Dialect) => {
  if (!nestedSpecs) return { members, path }
  const specsPath = [...path, "specs"]
  return { members: document.members(members["specs"] ?? {}, specsPath) ?? {}, path: specsPath }
}

const readNumberType = (
  document: Document,
  members: Members,
  path: Path,
  dialect: Dialect,
  type: "int" | "float" | "double"
): DataType => {
  const bounds = readBounds(document, members, path, dialect)
  const limit = type === "float" ? maxFloat : Number.MAX_VALUE
  const range = type === "int" ? { ...int32, whole: true } : { min: -limit, max: limit, whole: false }
  const number = (name: string, within = range) =>
    document.optionalNumber(bounds.members[name], [...bounds.path, name], within)
  const [min, max] = [number("min"), number("max")]
  if (min !== undefined && max !== undefined && min > max) {
    document.refuse([...bounds.path, "max"], `expected at least the minimum, ${min}`)
  }
  const step = number("step", { ...range, min: 0 })
  const text = (name: string) => document.optionalText(bounds.members[name], [...bounds.path, name], maxUnitLength)
  const [unit, unitName] = [text("unit"), text("unitName")]
  return {
    type,
    ...min === undefined ? {} : { min },
    ...max === undefined ? {} : { max },
    ...step === undefined ? {} : { step },
    ...unit === "" ? {} : { unit },
    ...unitName === "" ? {} : { unitName }
  }
}

const readLabels = (
  document: Document,
  value: unknown,
  path: Path,
  type: "bool" | "enum"
): Readonly<Record<string, string>> => {
  const members = document.members(value, path)
  if (members === undefined) return {}
  const keys = Object.keys(members)
  if (type === "bool" && (keys.length !== 2 || !("0" in members) || !("1" in members))) {
    document.refuse(path, "expected a label for 0 and one for 1")
  }
  if (keys.length === 0) document.refuse(path, "expected at least one value with its label")
  for (const key of keys) {
    const number = Number(key)
    if (String(number) !== key || !Number.isInteger(number) || number < int32.min || number > int32.max) {
      document.refuse([...path, key], "expected a whole number as the value")
    }
    document.text(members[key], [...path, key], maxLabelLength)
  }
  return Object.fromEntries(keys.map((key) => [key, String(members[key])]))
}

/** Writes the elements under the names of the dialect, and adds the generated ones. */
export const writeModel = (model: ThingModel, dialect: Dialect) => {
  const readable = model.properties.filter(({ accessMode }) => accessMode !== "w")
  const writable = model.properties.filter(({ accessMode }) => accessMode !== "r")
  const asField = ({ dataType, id, name }: PropertyElement): Field => ({ id, name, dataType })
  const base = { required: true, standard: false, desc: "" }
  const post: EventElement = {
    ...base,
    id: "post",
    name: "post",
    eventType: "info",
    outputData: readable.map(asField)
  }
  const set: ServiceElement = {
    ...base,
    id: "set",
    name: "set",
    callType: "async",
    inputData: writable.map(asField),
    outputData: []
  }
  const get: ServiceElement = {
    ...base,
    id: "get",
    name: "get",
    callType: "async",
    inputData: readable.map(asField),
    outputData: readable.map(asField)
  }
  const none = model.properties.length === 0
  return {
    properties: model.properties.map((property) => writeProperty(property, dialect)),
    events: [
      ...none ? [] : [{ ...writeEvent(post, dialect), method: "thing.event.property.post" }],
      ...model.events.map((event) => writeEvent(event, dialect))
    ],
    services: [
      ...none ? [] : [
        { ...writeService(set, dialect), method: "thing.service.property.set" },
        {
          ...writeService(get, dialect),
          ...dialect.id === "id" ? {} : { inputData: readable.map(({ id }) => id) },
          method: "thing.service.property.get"
        }
      ],
      ...model.services.map((service) => writeService(service, dialect))
    ]
  }
}

const writeCommon = (
  { desc, id, name, required, standard }: PropertyElement | EventElement | ServiceElement,
  dialect: Dialect,
  funcType: string
) => ({
  [dialect.id]: id,
  name,
  required,
  ...dialect.id === "id" ? { standard, funcType } : standard ? { standard } : {},
  ...desc === "" && (dialect.id === "identifier" || funcType === "property") ? {} : { desc }
})

const writeProperty = (property: PropertyElement, dialect: Dialect) => ({
  ...writeCommon(property, dialect, "property"),
  accessMode: property.accessMode,
  dataType: writeDataType(property.dataType, dialect)
})

const writeEvent = (event: EventElement, dialect: Dialect) => ({
  ...writeCommon(event, dialect, "event"),
  [dialect.eventType]: event.eventType,
  method: `thing.event.${event.id}.post`,
  outputData: writeFields(event.outputData, dialect)
})

const writeService = (service: ServiceElement, dialect: Dialect) => ({
  ...writeCommon(service, dialect, "service"),
  callType: service.callType,
  method: `thing.service.${service.id}`,
  inputData: writeFields(service.inputData, dialect) as ReadonlyArray<unknown>,
  outputData: writeFields(service.outputData, dialect)
})

const writeFields = (fields: ReadonlyArray<Field>, dialect: Dialect) =>
  fields.map(({ dataType, id, name }) => ({ [dialect.id]: id, name, dataType: writeDataType(dataType, dialect) }))

/** Text in an array that has no length of its own stays without one. */
const writeItem = (item: DataType, dialect: Dialect): Members => {
  if (item.type !== "text" || item.length < maxTextBytes) return writeDataType(item, dialect)
  return dialect.nestedSpecs ? { type: "text", specs: {} } : { type: "text" }
}

const writeDataType = (dataType: DataType, dialect: Dialect): Members => {
  const { nestedSpecs } = dialect
  switch (dataType.type) {
    case "bool":
    case "enum":
      return { ...dataType }
    case "date":
      return nestedSpecs ? { type: "date", specs: {} } : { type: "date" }
    case "struct":
      return { type: "struct", specs: writeFields(dataType.specs, dialect) }
    case "array": {
      const item = writeItem(dataType.item, dialect)
      return nestedSpecs
        ? { type: "array", specs: { size: String(dataType.size), item } }
        : { ...item, type: "array", size: dataType.size, elementType: dataType.item.type }
    }
    default: {
      const { type, ...bounds } = dataType
      return nestedSpecs
        ? { type, specs: Object.fromEntries(Object.entries(bounds).map(([name, bound]) => [name, String(bound)])) }
        : { ...dataType }
    }
  }
}
