/**
 * Reads and writes thing models in the forms `metadata`, `tsl` and `sdf`
 * (docs/protocol/thing-models.md).
 */
import { Effect } from "effect"
import type { ProductKey } from "../product/Product.ts"
import { Document, type Members } from "./formats/Document.ts"
import * as Metadata from "./formats/Metadata.ts"
import * as SdfReader from "./formats/SdfReader.ts"
import * as SdfWriter from "./formats/SdfWriter.ts"
import * as Tsl from "./formats/Tsl.ts"
import {
  type ElementType,
  type EventElement,
  InvalidThingModel,
  type ModelType,
  type PropertyElement,
  type ServiceElement,
  type ThingModel
} from "./ThingModel.ts"

/** A thing model that was read from a document. */
export interface Decoded {
  readonly model: ThingModel
  /** Sentences that say what was changed to make the document fit. */
  readonly warnings: ReadonlyArray<string>
}

const orRefuse = <A>(document: Document, value: A): Effect.Effect<A, InvalidThingModel> => {
  const [first, ...rest] = document.issues
  return first === undefined ? Effect.succeed(value) : Effect.fail(new InvalidThingModel({ issues: [first, ...rest] }))
}

/** Reads a document. Fails with the first 100 issues. */
export const decode = (type: ModelType, value: unknown): Effect.Effect<Decoded, InvalidThingModel> =>
  Effect.suspend(() => {
    const document = new Document()
    return orRefuse(
      document,
      type === "sdf"
        ? SdfReader.read(document, value)
        : { model: type === "tsl" ? Tsl.read(document, value) : Metadata.read(document, value), warnings: [] }
    )
  })

/** Reads a document from JSON text. Fails as `decode` does, and if the text is not JSON. */
export const decodeText = (type: ModelType, text: string): Effect.Effect<Decoded, InvalidThingModel> =>
  Effect.flatMap(
    Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: (cause) =>
        new InvalidThingModel({
          issues: [{ path: [], message: `expected JSON: ${cause instanceof Error ? cause.message : String(cause)}` }]
        })
    }),
    (value) => decode(type, value)
  )

/** Reads one element in the form `metadata`. Fails with the first 100 issues. */
export const decodeElement = (
  type: ElementType,
  value: unknown
): Effect.Effect<PropertyElement | EventElement | ServiceElement, InvalidThingModel> =>
  Effect.suspend(() => {
    const document = new Document()
    const element = Metadata.readElement(document, type, value)
    return Effect.map(orRefuse(document, element), (element) => element!)
  })

/** Writes a model in the given form. */
export const encode = (
  type: ModelType,
  { model, productKey, version }: {
    readonly model: ThingModel
    readonly productKey: ProductKey
    readonly version: number
  }
): Members => {
  switch (type) {
    case "metadata":
      return Metadata.write(model)
    case "tsl":
      return Tsl.write(model, productKey, version)
    case "sdf":
      return SdfWriter.write(model, productKey, version)
  }
}
