/**
 * The form `tsl` of a thing model: the thing specification language of the
 * device protocol (alink-facts, sections 5.1 to 5.3).
 */
import type { ProductKey } from "../../product/Product.ts"
import type { ThingModel } from "../ThingModel.ts"
import type { Document } from "./Document.ts"
import { type Dialect, readModel, writeModel } from "./Elements.ts"

const dialect: Dialect = { id: "identifier", eventType: "type", nestedSpecs: true }

/** What the documents of this language declare as their schema. */
const schema = "https://iotx-tsl.oss-ap-southeast-1.aliyuncs.com/schema.json"

export const read = (document: Document, value: unknown): ThingModel => readModel(document, value, dialect)

export const write = (model: ThingModel, productKey: ProductKey, version: number) => ({
  schema,
  profile: { version: `${version}.0`, productKey },
  ...writeModel(model, dialect)
})
