/**
 * The routes of device groups (docs/api/device-groups.md).
 */
import { DeviceGroupChanges, DeviceGroupDraft, DeviceQuery, DeviceStatus } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProject, QuotaExceeded } from "../project/ProjectFailures.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import {
  DeviceGroupFull,
  DeviceGroupKindMismatch,
  DeviceGroupNameTaken,
  NoSuchDeviceGroup
} from "./DeviceGroupFailures.ts"

const Query = toSnakeCase(DeviceQuery)
const query = Schema.optional(Query.annotate({ description: "Makes the group a dynamic one" }))

/** A group of devices. */
export const DeviceGroupInfo = Schema.Struct({
  group_id: Schema.Int,
  name: Schema.String,
  desc: Schema.String,
  type: Schema.Literals(["static", "dynamic"]),
  query: Schema.NullOr(Query).annotate({ description: "Null: the group is static" }),
  created_at: DateText,
  updated_at: DateText
}).annotate({ identifier: "DeviceGroup" })

const One = Envelope(DeviceGroupInfo)

/** A device of a group. */
export const GroupDevice = Schema.Struct({
  device_id: Schema.String,
  product_key: Schema.String,
  device_name: Schema.String,
  nickname: Schema.String,
  status: DeviceStatus
}).annotate({ identifier: "GroupDevice" })

const Devices = Schema.Struct({ device_ids: Schema.Array(Schema.String) }).annotate({
  examples: [{ device_ids: ["F3003cClyBNDUh7AJsum"] }]
})

/** The group `deviceGroups` of the typed client. */
export class DeviceGroupApi extends HttpApiGroup.make("deviceGroups").add(
  HttpApiEndpoint.post("createDeviceGroup", "/device-groups", {
    payload: Schema.Struct({ ...DeviceGroupDraft.fields, query }).annotate({
      examples: [
        { name: "Hall lamps" },
        { name: "Kitchens", query: { tags: { room: "kitchen" }, status: "online" } }
      ]
    }),
    success: One,
    error: [NoSuchProject, DeviceGroupNameTaken, QuotaExceeded]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Create a group of devices")
    .annotate(
      OpenApi.Description,
      "Static, or with a `query` dynamic: then it has the devices for which the query holds."
    ),
  HttpApiEndpoint.get("listDeviceGroups", "/device-groups", { query: pageQuery, success: Paged(DeviceGroupInfo) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List the device groups of the project"),
  HttpApiEndpoint.get("getDeviceGroup", "/device-groups/:group_id", {
    params: PathParams.deviceGroup,
    success: One,
    error: NoSuchDeviceGroup
  }).annotate(OpenApi.Summary, "Read a device group"),
  HttpApiEndpoint.put("changeDeviceGroup", "/device-groups/:group_id", {
    params: PathParams.deviceGroup,
    payload: Schema.Struct({ ...DeviceGroupChanges.fields, query }).annotate({ examples: [{ name: "Lamps" }] }),
    success: One,
    error: [NoSuchDeviceGroup, DeviceGroupNameTaken, DeviceGroupKindMismatch]
  }).annotate(OpenApi.Summary, "Change the name, description or query of a device group"),
  HttpApiEndpoint.delete("deleteDeviceGroup", "/device-groups/:group_id", {
    params: PathParams.deviceGroup,
    success: EnvelopeOnly,
    error: NoSuchDeviceGroup
  }).annotate(OpenApi.Summary, "Delete a device group; its devices stay"),
  HttpApiEndpoint.get("listDevicesOfGroup", "/device-groups/:group_id/things", {
    params: PathParams.deviceGroup,
    query: pageQuery,
    success: Paged(GroupDevice),
    error: NoSuchDeviceGroup
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the devices that are in the group now"),
  HttpApiEndpoint.post("addDevicesToGroup", "/device-groups/:group_id/things", {
    params: PathParams.deviceGroup,
    payload: Devices,
    success: Envelope(
      Schema.Struct({ added: Schema.Int.annotate({ description: "Devices that the group did not have" }) })
    ),
    error: [NoSuchDeviceGroup, DeviceGroupKindMismatch, DeviceGroupFull]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Add 1 to 1,000 devices to a static group")
    .annotate(OpenApi.Description, "All of them or none."),
  HttpApiEndpoint.delete("removeDevicesFromGroup", "/device-groups/:group_id/things", {
    params: PathParams.deviceGroup,
    payload: Devices,
    success: Envelope(
      Schema.Struct({ removed: Schema.Int.annotate({ description: "Devices that the group had" }) })
    ),
    error: [NoSuchDeviceGroup, DeviceGroupKindMismatch]
  }).annotate(OpenApi.Summary, "Take 1 to 1,000 devices from a static group"),
  HttpApiEndpoint.get("listGroupsOfDevice", "/things/:device_id/groups", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({ results: Schema.Array(DeviceGroupInfo) })),
    error: NoSuchDevice
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the groups that a device is in now, newest first")
).annotate(OpenApi.Title, "Device groups") {}
