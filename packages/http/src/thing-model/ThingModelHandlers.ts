/**
 * Handlers of the routes of thing models.
 */
import {
  type ChangedModel,
  InvalidInput,
  ModelFormat,
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
