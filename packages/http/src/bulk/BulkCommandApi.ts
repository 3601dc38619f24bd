/**
 * The routes of bulk commands (docs/api/bulk-commands.md).
 */
import { BulkCommandDraft, BulkCommandStatus, BulkDeviceState } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import { NoSuchDeviceGroup } from "../group/DeviceGroupFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { InvalidValue, NoSuchElement } from "../thing-model/ThingModelFailures.ts"
import { BulkCommandCancelled, BulkScopeUnfit, NoSuchBulkCommand, TooManyBulkCommands } from "./BulkCommandFailures.ts"

const info = {
  bulk_id: Schema.Int,
  service_id: Schema.String.annotate({ description: "Empty: the command sets properties" }),
  params: Schema.Record(Schema.String, Schema.Json),
  ttl: Schema.Int,
  status: BulkCommandStatus.annotate({
    description: "completed: each device has its command or was refused; the commands go on"
  }),
  total: Schema.Int.annotate({ description: "Devices" }),
  created_at: DateText,
  updated_at: DateText
}

/** A bulk command. */
export const BulkCommandInfo = Schema.Struct(info).annotate({ identifier: "BulkCommand" })

/** A bulk command, and how far its devices have come. */
export const BulkCommandDetail = Schema.Struct({
  ...info,
  counts: Schema.Record(Schema.String, Schema.Int).annotate({ description: "Devices by their state" })
}).annotate({ identifier: "BulkCommandDetail" })

/** A device of a bulk command. */
export const BulkDeviceInfo = Schema.Struct({
  device_id: Schema.String,
  device_name: Schema.String,
  state: BulkDeviceState.annotate({ description: "pending until it is asked, then that of its command" }),
  message_id: Schema.String.annotate({ description: "Its command; empty: it has none" }),
  code: Schema.NullOr(Schema.Int).annotate({ description: "The code of the device's reply; 200: done" }),
  reason: Schema.String
}).annotate({ identifier: "BulkCommandDevice" })

/** The group `bulkCommands` of the typed client. */
export class BulkCommandApi extends HttpApiGroup.make("bulkCommands").add(
  HttpApiEndpoint.post("createBulkCommand", "/bulk-commands", {
    payload: toSnakeCase(BulkCommandDraft).pipe(Schema.annotateEncoded({
      examples: [
        { group_id: 3, params: { TargetTemperature: 21.5 } },
        { product_key: "a1B2c3D4e5F", service_id: "Restart", params: { Delay: 5 }, ttl: 3600 }
      ]
    })),
    success: Envelope(BulkCommandInfo),
    error: [NoSuchProduct, NoSuchDeviceGroup, NoSuchElement, InvalidValue, BulkScopeUnfit, TooManyBulkCommands]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Ask something of many devices")
    .annotate(
      OpenApi.Description,
      "Sets properties, or with `service_id` calls a service, of `device_ids`, or of the devices that a group or a " +
        "product has now. Carried out in the background."
    ),
  HttpApiEndpoint.get("listBulkCommands", "/bulk-commands", { query: pageQuery, success: Paged(BulkCommandInfo) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List the bulk commands of the project, newest first"),
  HttpApiEndpoint.get("getBulkCommand", "/bulk-commands/:bulk_id", {
    params: PathParams.bulkCommand,
    success: Envelope(BulkCommandDetail),
    error: NoSuchBulkCommand
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read a bulk command, and how far its devices have come"),
  HttpApiEndpoint.get("listBulkCommandDevices", "/bulk-commands/:bulk_id/things", {
    params: PathParams.bulkCommand,
    query: { ...pageQuery, state: Schema.optional(BulkDeviceState) },
    success: Paged(BulkDeviceInfo),
    error: NoSuchBulkCommand
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List what became of each device of a bulk command"),
  HttpApiEndpoint.delete("cancelBulkCommand", "/bulk-commands/:bulk_id", {
    params: PathParams.bulkCommand,
    success: EnvelopeOnly,
    error: [NoSuchBulkCommand, BulkCommandCancelled]
  }).annotate(OpenApi.Summary, "Cancel a bulk command")
    .annotate(
      OpenApi.Description,
      "Devices that were not asked never are; commands that are still queued are cancelled."
    )
).annotate(OpenApi.Title, "Bulk commands") {}
