/**
 * Thing models: the properties, events and services of a product's devices
 * (docs/protocol/thing-models.md).
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { InputIssue, issuesText } from "../kernel/InvalidInput.ts"
import type { DataType, Field } from "./DataType.ts"

interface Element {
  /** 1 to 50 letters, digits and `_`, unique in the model. */
  readonly id: string
  /** 1 to 30 characters. */
  readonly name: string
  /** Information for applications: the cloud refuses no report without it. */
  readonly required: boolean
  /** Whether the element was taken from a template. */
  readonly standard: boolean
  readonly desc: string
}

export interface PropertyElement extends Element {
  /** What the application may do: read, write or both. */
  readonly accessMode: "r" | "w" | "rw"
  readonly dataType: DataType
}

export interface EventElement extends Element {
  readonly eventType: "info" | "alert" | "error"
  readonly outputData: ReadonlyArray<Field>
}

export interface ServiceElement extends Element {
  readonly callType: "async" | "sync"
  readonly inputData: ReadonlyArray<Field>
  readonly outputData: ReadonlyArray<Field>
}

/** A thing model, without the elements `post`, `set` and `get`, which follow from the properties. */
export interface ThingModel {
  readonly properties: ReadonlyArray<PropertyElement>
  readonly events: ReadonlyArray<EventElement>
  readonly services: ReadonlyArray<ServiceElement>
}

export const emptyModel: ThingModel = { properties: [], events: [], services: [] }

export const isEmpty = ({ events, properties, services }: ThingModel): boolean =>
  properties.length + events.length + services.length === 0

/** Elements of one model, at most. */
export const maxElements = 1500

/** The form in which a model is written. */
export const ModelType = Schema.Literals(["metadata", "tsl", "sdf"])
export type ModelType = typeof ModelType.Type

export const ElementType = Schema.Literals(["property", "event", "service"])
export type ElementType = typeof ElementType.Type

/** The list of a model that holds the elements of a type. */
export const listOf = { property: "properties", event: "events", service: "services" } as const

/** The model or element is not valid; nothing has changed. */
export class InvalidThingModel extends DomainError<InvalidThingModel>()(
  "InvalidThingModel",
  {
    /** The paths lead to members of the given document. */
    issues: Schema.NonEmptyArray(InputIssue)
  },
  ({ issues }) => issuesText(issues)
) {}

/** The model has no such property, event or service. */
export class ElementNotFound extends DomainError<ElementNotFound>()(
  "ElementNotFound",
  {
    productKey: Schema.String,
    type: ElementType,
    id: Schema.String
  },
  ({ id, productKey, type }) => `The thing model of product ${productKey} has no ${type} ${id}`
) {}
