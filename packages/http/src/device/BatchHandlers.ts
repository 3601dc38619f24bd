/**
 * Handlers of the routes of batches of devices.
 */
import { type Batch, Batches, type BatchMember, roleIncludes } from "@device-cloud/core"
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { type Caller, secretsRole } from "../middleware/Caller.ts"
import { RoleTooLow } from "../project/ProjectFailures.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, respond, respondPage } from "../Envelope.ts"
import { failWith } from "../DomainFailures.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { BatchInfo } from "./BatchApi.ts"

/** Implements the group `batches`. */
export const layer = group(
  Api,
  "batches",
  Effect.fnUntraced(function*(handlers) {
    const batches = yield* Batches
    return handlers.handleAll({
      createBatch: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(batches.create(projectId, params.product_key, toCamelCase(payload)), batchId)
        ),
      listBatches: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => batches.list(projectId, params.product_key, page), batchInfo)
        ),
      getBatch: ({ params: { batch_id, product_key }, query }) =>
        Effect.gen(function*() {
          const { projectId, reveal, role } = yield* CurrentPrincipal
          if (query.format !== "csv") return yield* respond(batches.get(projectId, product_key, batch_id), batchInfo)
          if (!roleIncludes(role, secretsRole)) {
            return yield* Effect.fail(
              RoleTooLow.make({
                message: `The triples need the role ${secretsRole}; the access key has the role ${role}`
              })
            )
          }
          const text = yield* batches.export(projectId, product_key, batch_id).pipe(
            Effect.map(Stream.mapArray((devices) => [lines(product_key, devices, reveal)])),
            Effect.flatMap(Stream.mkString),
            Effect.catch(failWith)
          )
          return HttpServerResponse.text(head + text, {
            contentType: "text/csv; charset=utf-8",
            headers: { "content-disposition": `attachment; filename="batch-${batch_id}.csv"` }
          })
        }),
      deleteBatch: ({ params: { batch_id, product_key } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(batches.remove(projectId, product_key, batch_id), () => batchId({ batchId: batch_id }))
        )
    })
  })
)

const batchInfo = (batch: Batch): typeof BatchInfo.Type => ({
  batch_id: batch.batchId,
  product_key: batch.productKey,
  num: batch.size,
  desc: batch.description,
  created_at: dateText(batch.createdAt)
})

const batchId = ({ batchId }: Pick<Batch, "batchId">) => ({ batch_id: batchId })

const head = "product_key,device_name,device_secret,device_id\r\n"

/** Nothing needs quotes: names and secrets have letters, digits and - _ @ . : only. */
const lines = (productKey: string, devices: ReadonlyArray<BatchMember>, reveal: Caller["reveal"]): string =>
  devices.map(({ deviceId, deviceName, deviceSecret }) =>
    `${productKey},${deviceName},${reveal(deviceSecret)},${deviceId}\r\n`
  ).join("")
