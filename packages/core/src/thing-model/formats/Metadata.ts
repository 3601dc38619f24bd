/**
 * The form `metadata` of a thing model (specification, Thing model).
 */
import type { ElementType, ThingModel } from "../ThingModel.ts"
import type { Document } from "./Document.ts"
import { type Dialect, readEvent, readModel, readProperty, readService, writeModel } from "./Elements.ts"

const dialect: Dialect = { id: "id", eventType: "eventType", nestedSpecs: false }

export const read = (document: Document, value: unknown): ThingModel => readModel(document, value, dialect)

export const write = (model: ThingModel) => writeModel(model, dialect)

/** Reads one element, which stands at `element` of a request. */
export const readElement = (document: Document, type: ElementType, value: unknown) =>
  ({ property: readProperty, event: readEvent, service: readService })[type](document, value, ["element"], dialect)
