/**
 * The form `tsl` of a thing model: the thing specification language, which devices
 * read (docs/protocol/thing-models.md).
 */
import type { ProductKey } from "../../product/Product.ts"
import type { ThingModel } from "../ThingModel.ts"
import type { Document } from "./Document.ts"
import { type Dialect, readModel, writeModel } from "./Elements.ts"

const dialect: Dialect = { id: "identifier", eventType: "type", nestedSpecs: true }

/** The schema that documents in this language declare. */
const schema = "https://iotx-tsl.oss-ap-southeast-1.aliyuncs.com/schema.json"

/** Reads a model. Adds the issues to `document`. */
export const read = (document: Document, value: unknown): ThingModel => readModel(document, value, dialect)

/** Writes a version of the model of a product. */
export const write = (model: ThingModel, productKey: ProductKey, version: number) => ({
  schema,
  profile: { version: `${version}.0`, productKey },
  ...writeModel(model, dialect)
})
