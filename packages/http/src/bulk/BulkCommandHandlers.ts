/**
 * Handlers of the routes of bulk commands.
 */
import { type BulkCommand, BulkCommands, type BulkCounts, type BulkDevice } from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { BulkCommandDetail, BulkCommandInfo, BulkDeviceInfo } from "./BulkCommandApi.ts"

/** Implements the group `bulkCommands`. */
export const layer = group(
  Api,
  "bulkCommands",
  Effect.fnUntraced(function*(handlers) {
    const bulks = yield* BulkCommands
    return handlers.handleAll({
      createBulkCommand: ({ payload }) =>
        CurrentPrincipal.use(({ projectId }) => respond(bulks.create(projectId, toCamelCase(payload)), bulkInfo)),
      listBulkCommands: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) => respondPage(query, (page) => bulks.list(projectId, page), bulkInfo)),
      getBulkCommand: ({ params: { bulk_id } }) =>
        CurrentPrincipal.use(({ projectId }) => respond(bulks.get(projectId, bulk_id), bulkDetail)),
      listBulkCommandDevices: ({ params: { bulk_id }, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => bulks.devices(projectId, bulk_id, query.state, page), deviceInfo)
        ),
      cancelBulkCommand: ({ params: { bulk_id } }) =>
        CurrentPrincipal.use(({ projectId }) => done(bulks.cancel(projectId, bulk_id)))
    })
  })
)

const bulkInfo = (bulk: BulkCommand): typeof BulkCommandInfo.Type => ({
  bulk_id: bulk.bulkId,
  service_id: bulk.serviceId ?? "",
  params: bulk.params,
  ttl: bulk.ttl,
  status: bulk.status,
  total: bulk.total,
  created_at: dateText(bulk.createdAt),
  updated_at: dateText(bulk.updatedAt)
})

const bulkDetail = (
  { bulk, counts }: { readonly bulk: BulkCommand; readonly counts: BulkCounts }
): typeof BulkCommandDetail.Type => ({ ...bulkInfo(bulk), counts })

const deviceInfo = (device: BulkDevice): typeof BulkDeviceInfo.Type => ({
  device_id: device.deviceId,
  device_name: device.deviceName,
  state: device.state,
  message_id: device.messageId === null ? "" : String(device.messageId),
  code: device.code,
  reason: device.reason
})
