/**
 * Handlers of the routes of thing models.
 */
import {
  type ChangedModel,
  type ComparedModel,
  type ElementType,
  InvalidInput,
  listOf,
  type ModelComparison,
  ModelFormat,
  type ModelType,
  type ModelVersion,
  type ProductKey,
  ThingModels
} from "@device-cloud/core"
import { Effect, type Schema } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, respond } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"

/** Implements the group `thingModels`. */
export const layer = group(
  Api,
  "thingModels",
  Effect.fnUntraced(function*(handlers) {
    const models = yield* ThingModels
    return handlers.handleAll({
      getThingModel: ({ params: { product_key }, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(models.get(projectId, product_key), ({ model, version }) => ({
            thing_model: ModelFormat.encode(query.model_type, { model, productKey: product_key, version }) as Document,
            version
          }))
        ),
      importThingModel: ({ params: { product_key }, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            models.importFrom(projectId, product_key, payload.model_type, payload.model_data),
            changed(product_key)
          )
        ),
      copyThingModel: ({ params: { product_key }, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(models.copy(projectId, product_key, query.source_product_key), changed(product_key))
        ),
      clearThingModel: ({ params: { product_key } }) =>
        CurrentPrincipal.use(({ projectId }) => respond(models.clear(projectId, product_key), changed(product_key))),
      compareThingModel: ({ params: { product_key }, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            models.compare(projectId, product_key, comparedModel(payload), payload.from_version),
            comparison(product_key)
          )
        ),
      listThingModelVersions: ({ params: { product_key } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(models.versions(projectId, product_key), (versions) => ({
            results: versions.map((version) => ({
              version: version.version,
              created_at: dateText(version.createdAt),
              thing_model: metadata(product_key, version)
            }))
          }))
        ),
      addThingModelElement: ({ params: { product_key }, payload: { element, type } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(models.addElement(projectId, product_key, type, element), changed(product_key))
        ),
      updateThingModelElement: ({ params: { product_key }, payload: { element, type } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(models.updateElement(projectId, product_key, type, element), changed(product_key))
        ),
      removeThingModelElement: ({ params: { product_key }, payload, query }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { id, type } = { ...query, ...payload }
          const remove = Effect.gen(function*() {
            if (type === undefined) return yield* new InvalidInput({ issues: [missing("type")] })
            if (id === undefined) return yield* new InvalidInput({ issues: [missing("id")] })
            return yield* models.removeElement(projectId, product_key, type, id)
          })
          return respond(remove, changed(product_key))
        })
    })
  })
)

type Document = Readonly<Record<string, Schema.Json>>

const metadata = (productKey: ProductKey, { model, version }: ModelVersion): Document =>
  ModelFormat.encode("metadata", { model, productKey, version }) as Document

const changed = (productKey: ProductKey) => (model: ChangedModel) => ({
  thing_model: metadata(productKey, model),
  version: model.version,
  warnings: model.warnings
})

const missing = (field: string) => ({ path: [field], message: "Expected it in the body or the query" })

/** The definition has checked which of the fields are there. */
const comparedModel = (
  { model_data = "", model_type = "metadata", to_version }: {
    readonly to_version?: number | undefined
    readonly model_type?: ModelType | undefined
    readonly model_data?: string | undefined
  }
): ComparedModel => to_version === undefined ? { type: model_type, text: model_data } : { version: to_version }

const comparison = (productKey: ProductKey) => ({ after, before, breaks, changes, warnings }: ModelComparison) => {
  const [old, now] = [before, after].map(({ model, version }) =>
    metadata(productKey, { model, version: version ?? 0, createdAt: 0 })
  )
  return {
    from_version: before.version,
    to_version: after.version,
    thing_model: now!,
    warnings,
    compatible: breaks.length === 0,
    breaks: breaks.map(({ element, id, message, whom }) => ({ whom, type: element, id, message })),
    changes: changes.map(({ change, id, type }) => ({
      change,
      type,
      id,
      before: elementOf(old!, type, id),
      after: elementOf(now!, type, id)
    }))
  }
}

const elementOf = (model: Document, type: ElementType, id: string): Document | null =>
  (model[listOf[type]] as ReadonlyArray<Document>).find((element) => element["id"] === id) ?? null
