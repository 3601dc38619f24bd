/**
 * Thing models as the API has them: the form `metadata`.
 */
import { api } from "../../api/client.ts"
import { now } from "../../api/clock.ts"
import { type Query, useQuery } from "../../api/useQuery.ts"

/** The type of a value with its bounds. A type that is not known here keeps its name. */
export interface DataType {
  readonly type: string
  readonly min?: number
  readonly max?: number
  readonly step?: number
  readonly unit?: string
  readonly unitName?: string
  /** Of text: bytes in UTF-8, at most. */
  readonly length?: number
  /** Of an array: items at most, and their type; the bounds of the items stand beside it. */
  readonly size?: number
  readonly elementType?: string
  /** The labels of a bool or an enum, or the members of a struct. */
  readonly specs?: Readonly<Record<string, string>> | ReadonlyArray<ModelField>
}

/** A member of a struct, or an input or output. */
export interface ModelField {
  readonly id: string
  readonly name: string
  readonly dataType: DataType
}

interface Element {
  readonly id: string
  readonly name: string
  readonly desc?: string
}

export interface PropertyElement extends Element {
  /** What the application may do: `r`, `w` or `rw`. */
  readonly accessMode: string
  readonly dataType: DataType
}

export interface EventElement extends Element {
  /** `info`, `alert` or `error`. */
  readonly eventType: string
  readonly outputData: ReadonlyArray<ModelField>
}

export interface ServiceElement extends Element {
  /** `async` or `sync`. */
  readonly callType: string
  readonly inputData: ReadonlyArray<ModelField>
  readonly outputData: ReadonlyArray<ModelField>
}

export interface ThingModel {
  readonly properties: ReadonlyArray<PropertyElement>
  readonly events: ReadonlyArray<EventElement>
  readonly services: ReadonlyArray<ServiceElement>
}

export const emptyModel: ThingModel = { properties: [], events: [], services: [] }

/** An export also has these elements, which follow from the properties. */
const derived = new Set(["post", "set", "get"])

/** The model in what the API exports in the form `metadata`, without the elements that follow from the properties. */
export const modelOf = (document: unknown): ThingModel => {
  const { events = [], properties = [], services = [] } = document as Partial<ThingModel>
  const isOwn = ({ id }: Element) => !derived.has(id)
  return { properties, events: events.filter(isOwn), services: services.filter(isOwn) }
}

/** The model of a product; without a key, an empty one. */
export const useModel = (productKey: string | undefined): Query<ThingModel> =>
  useQuery(async (signal) => {
    if (productKey === undefined || productKey === "") return emptyModel
    const { thing_model } = await api.thingModels.getThingModel({
      params: { product_key: productKey },
      query: { model_type: "metadata" },
      signal
    })
    return modelOf(thing_model)
  }, [productKey])

/** What an application may set. */
export const writableOf = ({ properties }: ThingModel): ReadonlyArray<PropertyElement> =>
  properties.filter(({ accessMode }) => accessMode.includes("w"))

export const isNumber = ({ type }: DataType): boolean => type === "int" || type === "float" || type === "double"

/** A value that is one of few: its label by its number. Undefined for other types. */
export const labelsOf = ({ specs, type }: DataType): Readonly<Record<string, string>> | undefined =>
  (type === "bool" || type === "enum") && typeof specs === "object" && specs !== null && !Array.isArray(specs)
    ? specs as Readonly<Record<string, string>>
    : undefined

export const membersOf = ({ specs }: DataType): ReadonlyArray<ModelField> =>
  Array.isArray(specs) ? specs as ReadonlyArray<ModelField> : []

/** The type of the items of an array. */
export const itemOf = ({ elementType = "text", ...bounds }: DataType): DataType => ({ ...bounds, type: elementType })

/** A value of the type that one can begin with. */
export const firstOf = (type: DataType): unknown => {
  if (isNumber(type)) return Math.min(Math.max(0, type.min ?? 0), type.max ?? Infinity)
  switch (type.type) {
    case "bool":
      return 0
    case "enum":
      return Number(Object.keys(labelsOf(type) ?? {})[0] ?? 0)
    case "text":
      return ""
    case "date":
      return String(now())
    case "struct":
      return firstOfAll(membersOf(type))
    case "array":
      return []
    default:
      return null
  }
}

/** Values of all fields that one can begin with. */
export const firstOfAll = (fields: ReadonlyArray<ModelField>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(fields.map(({ dataType, id }) => [id, firstOf(dataType)]))
