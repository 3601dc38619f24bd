/**
 * Manages the thing models of products (docs/api/thing-models.md).
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { InvalidInput } from "../kernel/InvalidInput.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProductKey, type ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import { compatible, type ModelBreak } from "./Compatibility.ts"
import { Misfit } from "./DataType.ts"
import { ModelCache } from "./ModelCache.ts"
import { changesOf, type ModelChange } from "./ModelChange.ts"
import * as ModelFormat from "./ModelFormat.ts"
import * as ModelValidator from "./ModelValidator.ts"
import { ReportedValues } from "./ReportedValues.ts"
import {
  ElementNotFound,
  type ElementType,
  emptyModel,
  InvalidThingModel,
  isEmpty,
  listOf,
  maxElements,
  type ModelType,
  type ThingModel
} from "./ThingModel.ts"
import { type ModelVersion, ThingModelStore } from "./ThingModelStore.ts"

export class ThingModels extends Context.Service<ThingModels, {
  /** Returns the latest version; version 0 without elements if the product has never had a model. */
  readonly get: (projectId: ProjectId, productKey: ProductKey) => Effect.Effect<ModelVersion, Failure>
  /** Returns the latest 10 versions, newest first. */
  readonly versions: (
    projectId: ProjectId,
    productKey: ProductKey
  ) => Effect.Effect<ReadonlyArray<ModelVersion>, Failure>
  /**
   * Says in what `after` differs from a stored version, by default the latest, and what
   * that breaks. Stores nothing. Fails with `InvalidInput` if a version is not among the
   * latest 10.
   */
  readonly compare: (
    projectId: ProjectId,
    productKey: ProductKey,
    after: ComparedModel,
    beforeVersion?: number
  ) => Effect.Effect<ModelComparison, InvalidThingModel | InvalidInput | Failure>
  /** Replaces the model by the one in the JSON text. */
  readonly importFrom: (
    projectId: ProjectId,
    productKey: ProductKey,
    type: ModelType,
    text: string
  ) => Effect.Effect<ChangedModel, InvalidThingModel | Failure>
  /** Replaces the model by the one of another product of the project. */
  readonly copy: (
    projectId: ProjectId,
    productKey: ProductKey,
    source: ProductKey
  ) => Effect.Effect<ChangedModel, Failure>
  /** Replaces the model by one without elements. */
  readonly clear: (projectId: ProjectId, productKey: ProductKey) => Effect.Effect<ChangedModel, Failure>
  /** Adds an element, which is given in the form `metadata`. */
  readonly addElement: (
    projectId: ProjectId,
    productKey: ProductKey,
    type: ElementType,
    element: unknown
  ) => Effect.Effect<ChangedModel, InvalidThingModel | Failure>
  /** Replaces the element with the same id; `element` has the form `metadata`. */
  readonly updateElement: (
    projectId: ProjectId,
    productKey: ProductKey,
    type: ElementType,
    element: unknown
  ) => Effect.Effect<ChangedModel, InvalidThingModel | ElementNotFound | Failure>
  /** Removes an element. */
  readonly removeElement: (
    projectId: ProjectId,
    productKey: ProductKey,
    type: ElementType,
    id: string
  ) => Effect.Effect<ChangedModel, ElementNotFound | Failure>
}>()("@device-cloud/core/thing-model/ThingModels") {
  static readonly layer: Layer.Layer<
    ThingModels,
    never,
    ThingModelStore | Products | ReportedValues | ModelCache
  > = Layer.effect(ThingModels, Effect.suspend(() => make))
}

/** Devices whose stored values are checked against a changed model, at most. */
const sampledDevices = 1000

/** The model after a change. */
export interface ChangedModel extends ModelVersion {
  /** Sentences about changes to the given document, and about stored values that do not fit the model. */
  readonly warnings: ReadonlyArray<string>
}

/** A model to compare with: a stored version, or a document as JSON text. */
export type ComparedModel = { readonly version: number } | { readonly type: ModelType; readonly text: string }

/** Two models side by side. */
export interface ModelComparison {
  readonly before: ModelVersion
  /** Its version is null: it is not stored. */
  readonly after: { readonly version: number | null; readonly model: ThingModel }
  readonly changes: ReadonlyArray<ModelChange>
  /** Empty: the change breaks nothing. */
  readonly breaks: ReadonlyArray<ModelBreak>
  /** Sentences about what was changed to make the document fit. */
  readonly warnings: ReadonlyArray<string>
}

type Failure = ProductNotFound | StoreError

const none: ModelVersion = { version: 0, model: emptyModel, createdAt: 0 }

const make = Effect.gen(function*() {
  const store = yield* ThingModelStore
  const products = yield* Products
  const values = yield* ReportedValues
  const models = yield* ModelCache

  const get = Effect.fn("ThingModels.get")(function*(projectId: ProjectId, productKey: ProductKey) {
    yield* products.get(projectId, productKey)
    return Option.getOrElse(yield* store.latest(productKey), () => none)
  })

  const versions = Effect.fn("ThingModels.versions")(function*(projectId: ProjectId, productKey: ProductKey) {
    yield* products.get(projectId, productKey)
    return yield* store.history(productKey)
  })

  /** Sentences about stored values that do not fit the model. */
  const misfits = Effect.fnUntraced(function*(productKey: ProductKey, model: ThingModel) {
    if (isEmpty(model)) return []
    const compiled = ModelValidator.make(model, 0)
    const counts = new Map<string, number>()
    for (const reported of yield* values.sample(productKey, sampledDevices)) {
      for (const [id, value] of Object.entries(reported)) {
        const checked = compiled.reported(id, value)
        if (checked instanceof Misfit) counts.set(id, (counts.get(id) ?? 0) + 1)
      }
    }
    // Which device comes first is up to the store.
    return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, count]) =>
      `${id}: the stored values of ${count} of the ${sampledDevices} newest devices do not fit the model`
    )
  })

  /** Stores the model that `next` makes of the latest one. Tries again when another change is faster. */
  const change = Effect.fnUntraced(function*<E>(
    projectId: ProjectId,
    productKey: ProductKey,
    next: (model: ThingModel) => Effect.Effect<ModelFormat.Decoded, E>
  ): Effect.fn.Return<ChangedModel, E | Failure> {
    while (true) {
      const before = yield* get(projectId, productKey)
      const { model, warnings } = yield* next(before.model)
      const version = { version: before.version + 1, model, createdAt: yield* Clock.currentTimeMillis }
      if (yield* store.insert(productKey, version)) {
        yield* models.changed(productKey)
        return { ...version, warnings: [...warnings, ...yield* misfits(productKey, model)] }
      }
    }
  })

  /** The stored version with this number; 0: the model before the first. */
  const versionOf = Effect.fnUntraced(function*(productKey: ProductKey, version: number, field: string) {
    if (version === 0) return none
    const stored = yield* store.history(productKey)
    const found = stored.find((each) => each.version === version)
    if (found !== undefined) return found
    const known = [...stored.map((each) => each.version), 0].join(", ")
    return yield* InvalidInput.of(field, `Expected a version that is kept: ${known}`)
  })

  const compare: ThingModels["Service"]["compare"] = Effect.fn("ThingModels.compare")(
    function*(projectId, productKey, compared, beforeVersion) {
      const latest = yield* get(projectId, productKey)
      const before = beforeVersion === undefined ? latest : yield* versionOf(productKey, beforeVersion, "fromVersion")
      const after = "version" in compared
        ? { ...yield* versionOf(productKey, compared.version, "toVersion"), warnings: [] }
        : { ...yield* ModelFormat.decodeText(compared.type, compared.text), version: null }
      return {
        before,
        after: { version: after.version, model: after.model },
        changes: changesOf(before.model, after.model),
        breaks: compatible(before.model, after.model),
        warnings: after.warnings
      }
    }
  )

  const withoutWarnings = (model: ThingModel): ModelFormat.Decoded => ({ model, warnings: [] })

  const importFrom = Effect.fn("ThingModels.importFrom")(
    function*(projectId: ProjectId, productKey: ProductKey, type: ModelType, text: string) {
      const decoded = yield* ModelFormat.decodeText(type, text)
      return yield* change(projectId, productKey, () => Effect.succeed(decoded))
    }
  )

  const copy = Effect.fn("ThingModels.copy")(
    function*(projectId: ProjectId, productKey: ProductKey, source: ProductKey) {
      const { model } = yield* get(projectId, source)
      return yield* change(projectId, productKey, () => Effect.succeed(withoutWarnings(model)))
    }
  )

  const clear = Effect.fn("ThingModels.clear")((projectId: ProjectId, productKey: ProductKey) =>
    change(projectId, productKey, () => Effect.succeed(withoutWarnings(emptyModel)))
  )

  const addElement = Effect.fn("ThingModels.addElement")(
    function*(projectId: ProjectId, productKey: ProductKey, type: ElementType, input: unknown) {
      const element = yield* ModelFormat.decodeElement(type, input)
      return yield* change(projectId, productKey, (model) => {
        const elements = [...model.properties, ...model.events, ...model.services]
        const refuse = (path: string, message: string) =>
          Effect.fail(new InvalidThingModel({ issues: [{ path: ["element", path], message }] }))
        if (elements.some(({ id }) => id === element.id)) {
          return refuse("id", `${element.id} is used more than once in the model`)
        }
        if (elements.length >= maxElements) return refuse("id", `expected at most ${maxElements} elements in the model`)
        const list = listOf[type]
        return Effect.succeed(withoutWarnings({ ...model, [list]: [...model[list], element] }))
      })
    }
  )

  const changeElements = Effect.fnUntraced(function*(
    projectId: ProjectId,
    productKey: ProductKey,
    { id, type }: { readonly type: ElementType; readonly id: string },
    replacement: ReadonlyArray<unknown>
  ) {
    return yield* change(projectId, productKey, (model) => {
      const list = listOf[type]
      const position = model[list].findIndex((element) => element.id === id)
      return position < 0
        ? Effect.fail(new ElementNotFound({ productKey, type, id }))
        : Effect.succeed(withoutWarnings({
          ...model,
          [list]: (model[list] as ReadonlyArray<unknown>).toSpliced(position, 1, ...replacement)
        }))
    })
  })

  const updateElement = Effect.fn("ThingModels.updateElement")(
    function*(projectId: ProjectId, productKey: ProductKey, type: ElementType, input: unknown) {
      const element = yield* ModelFormat.decodeElement(type, input)
      return yield* changeElements(projectId, productKey, { type, id: element.id }, [element])
    }
  )

  const removeElement = Effect.fn("ThingModels.removeElement")(
    (projectId: ProjectId, productKey: ProductKey, type: ElementType, id: string) =>
      changeElements(projectId, productKey, { type, id }, [])
  )

  return ThingModels.of({ get, versions, compare, importFrom, copy, clear, addElement, updateElement, removeElement })
})
