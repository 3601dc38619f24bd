/**
 * Thing models that TypeScript knows: the values of their properties, events and
 * services as types (docs/typed-models.md).
 */
import type { Json } from "../kernel/Json.ts"
import { compileFields, Misfit } from "./DataType.ts"
import { Document } from "./formats/Document.ts"
import * as Metadata from "./formats/Metadata.ts"
import * as ModelValidator from "./ModelValidator.ts"
import { InvalidThingModel } from "./ThingModel.ts"

/** A thing model in the form `metadata` (docs/protocol/thing-models.md). */
export interface ModelDefinition {
  readonly properties?: ReadonlyArray<PropertyDefinition>
  readonly events?: ReadonlyArray<EventDefinition>
  readonly services?: ReadonlyArray<ServiceDefinition>
}

interface ElementDefinition {
  /** 1 to 50 letters, digits and `_`, unique in the model. */
  readonly id: string
  /** 1 to 30 characters. */
  readonly name: string
  /** Default: none. */
  readonly desc?: string
  /** Default false. */
  readonly required?: boolean
  /** Default false. */
  readonly standard?: boolean
}

export interface PropertyDefinition extends ElementDefinition {
  /** What the application may do: read, write or both. */
  readonly accessMode: "r" | "w" | "rw"
  readonly dataType: DataTypeDefinition
}

export interface EventDefinition extends ElementDefinition {
  /** Default `info`. */
  readonly eventType?: "info" | "alert" | "error"
  readonly outputData?: ReadonlyArray<FieldDefinition>
}

export interface ServiceDefinition extends ElementDefinition {
  /** Default `async`. */
  readonly callType?: "async" | "sync"
  readonly inputData?: ReadonlyArray<FieldDefinition>
  readonly outputData?: ReadonlyArray<FieldDefinition>
}

/** A member of a struct, or an input or output. */
export interface FieldDefinition {
  readonly id: string
  readonly name: string
  readonly dataType: DataTypeDefinition
}

interface NumberBounds {
  readonly min?: number
  readonly max?: number
  readonly step?: number
  readonly unit?: string
  readonly unitName?: string
}

/** A type and its bounds. */
export type DataTypeDefinition =
  | NumberBounds & { readonly type: "int" | "float" | "double" }
  /** `specs`: the labels of 0 and 1. */
  | { readonly type: "bool"; readonly specs?: { readonly 0: string; readonly 1: string } }
  /** `specs`: each whole number with its label. */
  | { readonly type: "enum"; readonly specs: Readonly<Record<number, string>> }
  /** `length`: bytes in UTF-8. Default 10,240. */
  | { readonly type: "text"; readonly length?: number }
  | { readonly type: "date" }
  | { readonly type: "struct"; readonly specs: ReadonlyArray<FieldDefinition> }
  /** `size`: items at most. Default 512. The bounds of the items stand beside it. */
  | NumberBounds & { readonly type: "array"; readonly size?: number; readonly elementType: "int" | "float" | "double" }
  | { readonly type: "array"; readonly size?: number; readonly elementType: "text"; readonly length?: number }
  | {
    readonly type: "array"
    readonly size?: number
    readonly elementType: "struct"
    readonly specs: ReadonlyArray<FieldDefinition>
  }

/** A thing model whose types are known. */
export interface TypedModel<out D extends ModelDefinition = ModelDefinition> {
  /** As it was written: what `ThingModels.importFrom` takes as JSON text of type `metadata`. */
  readonly definition: D
  /** The model, compiled into checks. */
  readonly validator: ModelValidator.ModelValidator
}

/**
 * Defines a thing model, so that TypeScript knows its values. Throws
 * `InvalidThingModel` if it breaks a rule of thing models, as an import does.
 *
 * ```ts
 * const lamp = defineThingModel({
 *   properties: [
 *     { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool" } },
 *     { id: "energy", name: "Energy", accessMode: "r", dataType: { type: "double", unit: "kWh" } }
 *   ],
 *   events: [{ id: "overheated", name: "Overheated", outputData: [{ id: "at", name: "At", dataType: { type: "int" } }] }]
 * })
 * type Report = Reported<typeof lamp> // { power: 0 | 1, energy: number }
 * ```
 */
export const defineThingModel = <const D extends ModelDefinition>(definition: D): TypedModel<D> => {
  const document = new Document()
  const model = Metadata.read(document, definition)
  const [first, ...rest] = document.issues
  if (first !== undefined) throw new InvalidThingModel({ issues: [first, ...rest] })
  return { definition, validator: ModelValidator.make(model, 0) }
}

type DefinitionOf<M> = M extends TypedModel<infer D> ? D : never

type Properties<D> = D extends { readonly properties: ReadonlyArray<infer P extends PropertyDefinition> } ? P : never
type Events<D> = D extends { readonly events: ReadonlyArray<infer E extends EventDefinition> } ? E : never
type Services<D> = D extends { readonly services: ReadonlyArray<infer S extends ServiceDefinition> } ? S : never

type Outputs<E> = E extends { readonly outputData: ReadonlyArray<infer F extends FieldDefinition> } ? F : never
type Inputs<S> = S extends { readonly inputData: ReadonlyArray<infer F extends FieldDefinition> } ? F : never

/** The numbers of an `enum`. */
type NumbersOf<Specs> = keyof Specs extends infer Key
  ? Key extends number ? Key : Key extends `${infer N extends number}` ? N : never
  : never

/**
 * A value of a type as the cloud stores it, and as applications read it: `bool` is
 * 0 or 1, `date` is text. Members of a struct may be missing.
 */
export type Stored<T extends DataTypeDefinition> = T extends { readonly type: "int" | "float" | "double" } ? number
  : T extends { readonly type: "bool" } ? 0 | 1
  : T extends { readonly type: "enum"; readonly specs: infer Specs } ? NumbersOf<Specs>
  : T extends { readonly type: "text" | "date" } ? string
  : T extends { readonly type: "struct"; readonly specs: ReadonlyArray<infer F extends FieldDefinition> }
    ? StoredFields<F>
  : T extends { readonly type: "array"; readonly elementType: "int" | "float" | "double" } ? ReadonlyArray<number>
  : T extends { readonly type: "array"; readonly elementType: "text" } ? ReadonlyArray<string>
  : T extends { readonly type: "array"; readonly specs: ReadonlyArray<infer F extends FieldDefinition> }
    ? ReadonlyArray<StoredFields<F>>
  : never

/** A value of a type as it may be given: also true and false for a `bool`, and Unix milliseconds for a `date`. */
export type Given<T extends DataTypeDefinition> = T extends { readonly type: "bool" } ? 0 | 1 | boolean
  : T extends { readonly type: "date" } ? string | number
  : T extends { readonly type: "struct"; readonly specs: ReadonlyArray<infer F extends FieldDefinition> }
    ? GivenFields<F>
  : T extends { readonly type: "array"; readonly specs: ReadonlyArray<infer F extends FieldDefinition> }
    ? ReadonlyArray<GivenFields<F>>
  : Stored<T>

type StoredFields<F extends FieldDefinition> = { readonly [Member in F as Member["id"]]?: Stored<Member["dataType"]> }
type GivenFields<F extends FieldDefinition> = { readonly [Member in F as Member["id"]]?: Given<Member["dataType"]> }

/** The properties that devices report, each with its value; a report has some of them. */
export type Reported<M extends TypedModel> = {
  readonly [P in Exclude<Properties<DefinitionOf<M>>, { readonly accessMode: "w" }> as P["id"]]: Stored<P["dataType"]>
}

/** The properties that applications set, each with its value; a call sets some of them. */
export type Writable<M extends TypedModel> = {
  readonly [P in Exclude<Properties<DefinitionOf<M>>, { readonly accessMode: "r" }> as P["id"]]: Given<P["dataType"]>
}

/** The properties that applications set, as they are stored. */
export type Desired<M extends TypedModel> = {
  readonly [P in Exclude<Properties<DefinitionOf<M>>, { readonly accessMode: "r" }> as P["id"]]: Stored<P["dataType"]>
}

/** The events of the devices, each with its outputs, of which a device may leave some out. */
export type EventOutputs<M extends TypedModel> = {
  readonly [E in Events<DefinitionOf<M>> as E["id"]]: StoredFields<Outputs<E>>
}

/** The services of the devices, each with the inputs of a call, all of which are needed. */
export type ServiceInputs<M extends TypedModel> = {
  readonly [S in Services<DefinitionOf<M>> as S["id"]]: {
    readonly [F in Inputs<S> as F["id"]]: Given<F["dataType"]>
  }
}

/** The services of the devices, each with its outputs, of which a device may leave some out. */
export type ServiceOutputs<M extends TypedModel> = {
  readonly [S in Services<DefinitionOf<M>> as S["id"]]: StoredFields<Outputs<S>>
}

type Values = Readonly<Record<string, Json>>

/**
 * The values of properties that fit the model; the others are left out, for example
 * those that were reported before the model was there.
 */
export const fittingProperties = <M extends TypedModel>({ validator }: M, values: Values): Partial<Reported<M>> =>
  withoutInherited(
    validator.model.properties,
    Object.fromEntries(
      Object.entries(values).flatMap(([id, value]) => {
        const checked = validator.reported(id, value)
        return checked instanceof Misfit ? [] : [[id, checked]]
      })
    )
  ) as Partial<Reported<M>>

/** The outputs of an event, if the model has the event and they fit; else undefined. */
export const fittingOutputs = <M extends TypedModel, Id extends keyof EventOutputs<M> & string>(
  { validator }: M,
  eventId: Id,
  value: Json
): EventOutputs<M>[Id] | undefined => {
  const outputs = validator.model.events.find(({ id }) => id === eventId)?.outputData
  return fittingFields(outputs, validator.event(eventId), value) as EventOutputs<M>[Id] | undefined
}

/** The outputs in the reply of a service, if they fit; else undefined. */
export const fittingReply = <M extends TypedModel, Id extends keyof ServiceOutputs<M> & string>(
  { validator }: M,
  serviceId: Id,
  data: Json
): ServiceOutputs<M>[Id] | undefined => {
  const outputs = validator.service(serviceId)?.element.outputData
  return fittingFields(outputs, outputs && compileFields(outputs), data) as ServiceOutputs<M>[Id] | undefined
}

const fittingFields = (
  fields: ReadonlyArray<Identified> | undefined,
  check: ((values: Values) => Values | Misfit) | undefined,
  data: Json
): object | undefined => {
  if (fields === undefined || check === undefined) return undefined
  if (typeof data !== "object" || data === null || Array.isArray(data)) return undefined
  const checked = check(data as Values)
  return checked instanceof Misfit ? undefined : withoutInherited(fields, checked)
}

/**
 * The same values. What every object inherits, such as `constructor`, is undefined
 * if the model gives this id to a value and there is none.
 */
const withoutInherited = (fields: ReadonlyArray<Identified>, values: Values): object => {
  const inherited = fields.filter(({ id }) => id in values && !Object.hasOwn(values, id))
  return inherited.length === 0
    ? values
    : { ...values, ...Object.fromEntries(inherited.map(({ id }) => [id, undefined])) }
}

interface Identified {
  readonly id: string
}
