/**
 * The form `metadata` of a thing model: the form of the API
 * (docs/protocol/thing-models.md).
 */
import type { ElementType, ThingModel } from "../ThingModel.ts"
import type { Document } from "./Document.ts"
import { type Dialect, readEvent, readModel, readProperty, readService, writeModel } from "./Elements.ts"

const dialect: Dialect = { id: "id", eventType: "eventType", nestedSpecs: false }

/** Reads a model. Adds the issues to `document`. */
export const read = (document: Document, value: unknown): ThingModel => readModel(document, value, dialect)

/** Writes a model. */
export const write = (model: ThingModel) => writeModel(model, dialect)

/** Reads one element, the member `element` of a request. Adds the issues to `document`. */
export const readElement = (document: Document, type: ElementType, value: unknown) =>
  ({ property: readProperty, event: readEvent, service: readService })[type](document, value, ["element"], dialect)
