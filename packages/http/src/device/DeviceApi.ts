/**
 * The routes of devices (docs/api/devices.md) and their shadows
 * (docs/api/shadows.md).
 */
import {
  AuthType,
  DataFormat,
  DataSource,
  DeviceChanges,
  DeviceDraft,
  DeviceStatus,
  isFeedPlace,
  NodeType,
  ProtocolType,
  RotationDraft,
  Text,
  ValidateType
} from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import { QuotaExceeded } from "../project/ProjectFailures.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import {
  DeviceNamesTaken,
  NoSuchDevice,
  NotACloudGateway,
  PropertyNotReported,
  ShadowVersionConflict
} from "./DeviceFailures.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { InvalidValue } from "../thing-model/ThingModelFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

const EnabledStatus = Schema.Literals(["enable", "disable"])

const record = {
  device_id: Schema.String,
  product_key: Schema.String,
  device_name: Schema.String,
  device_secret: Schema.String,
  nickname: Schema.String,
  status: DeviceStatus,
  created_at: DateText,
  register_at: DateText,
  updated_at: DateText,
  batch_id: Schema.Int,
  enabled_status: EnabledStatus,
  ip: Schema.String,
  firmware_version: Schema.String
}

/** A device that was just created. */
export const DeviceRecord = Schema.Struct(record).annotate({ identifier: "DeviceRecord" })

const Tags = Schema.Record(Schema.String, Schema.String)

/** A device with what its product says. */
export const DeviceInfo = Schema.Struct({
  ...record,
  product_secret: Schema.String,
  product_name: Schema.String,
  product_id: Schema.Int,
  node_type: NodeType,
  protocol_type: ProtocolType,
  validate_type: ValidateType,
  data_format: DataFormat,
  auth_type: AuthType,
  device_type: Schema.String,
  time_zone: Schema.String,
  platform: Schema.Int,
  iot_platform: Schema.Int,
  platform_name: Schema.String,
  data_source: DataSource,
  diagnosis_enabled: Schema.Boolean,
  access_key: Schema.String,
  cloud_gtw_mqtt_param: Schema.NullOr(
    Schema.Struct({ clientid: Schema.String, username: Schema.String, password: Schema.String })
  ),
  cloud_gtw_device_uuid: Schema.String,
  topics: Schema.Array(Schema.String),
  sub_amount: Schema.Int,
  is_mocker: Schema.Boolean,
  bound: Schema.Boolean,
  mac: Schema.String.annotate({ description: "What the device named itself by when it registered" }),
  tags: Tags
}).annotate({ identifier: "DeviceInfo" })

const OneDevice = Envelope(Schema.Struct({ device_info: DeviceInfo }))

const PropertyTimes = Schema.Record(
  Schema.String,
  Schema.Struct({ timestamp: Schema.Int.annotate({ description: "Unix seconds" }) })
)
const PropertyValues = Schema.Record(Schema.String, Schema.Json)

/** The shadow of a device. */
export const ThingShadow = Schema.Struct({
  state: Schema.Struct({ desired: PropertyValues, reported: PropertyValues }),
  metadata: Schema.Struct({ desired: PropertyTimes, reported: PropertyTimes }),
  id: Schema.Int,
  timestamp: Schema.Int.annotate({ description: "The latest update, Unix seconds; 0: none" }),
  status: DeviceStatus,
  version: Schema.Int,
  delta: PropertyValues.annotate({ description: "What is desired and not yet reported" })
}).annotate({ identifier: "ThingShadow" })

const Refusal = Schema.Struct({
  time: DateText.annotate({ description: "The latest one, RFC 3339" }),
  first_time: DateText,
  times: Schema.Int,
  address: Schema.String.annotate({ description: "Where they came from; of IPv6 the network of 64 bits" }),
  reason: Schema.String,
  return_code: Schema.Int.annotate({ description: "Of the CONNACK" })
}).annotate({ identifier: "ConnectRefusal" })

/** The connection of a change, as far as it is known. */
const presenceLink = {
  address: Schema.String.annotate({ description: "Of the device or its gateway; empty: not known" }),
  transport: Schema.String.annotate({
    description: "mqtt, websocket, http, mqtt-bridge, gateway, or another one; empty: not known"
  }),
  node: Schema.String.annotate({ description: "The node of the cloud; empty: not known" }),
  gateway: Schema.NullOr(Schema.Struct({ product_key: Schema.String, device_name: Schema.String })).annotate({
    description: "The gateway that carries the connection"
  })
}

/** A change of the presence of a device. */
export const PresenceChange = Schema.Struct({
  entry_id: Schema.String.annotate({ description: "The id of the event that tells of it" }),
  time: DateText,
  kind: Schema.Literals(["online", "takeover", "offline"]).annotate({
    description: "takeover: another connection has become that of the device, which stays online"
  }),
  version: Schema.NullOr(Schema.Int).annotate({ description: "Of the status after the change; null of a takeover" }),
  ...presenceLink,
  reason: Schema.String.annotate({ description: "Why the device went offline; or empty" })
}).annotate({ identifier: "PresenceChange" })

const maxPresenceChanges = 200

/** Clients send `disble` as well as `disable`. */
const Action = Schema.Literals(["enable", "disble", "disable", "bind", "unbind"])

const listQuery = {
  ...pageQuery,
  product_key: Schema.optional(PathParams.productKey.product_key),
  batch_id: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))),
  enabled_status: Schema.optional(EnabledStatus),
  status: Schema.optional(DeviceStatus),
  tag: Schema.optional(
    Text(1024).check(Schema.isPattern(/^[^:]{1,100}:/u, { expected: "key:value" })).annotate({
      description: "A tag that the device has, as `key:value`"
    })
  ),
  keyword: Schema.optional(Text(128).annotate({ description: "What the name or the nickname begins with" }))
}

/** The group `devices` of the typed client. */
export class DeviceApi extends HttpApiGroup.make("devices").add(
  HttpApiEndpoint.post("createDevice", "/products/:product_key/things", {
    params: PathParams.productKey,
    payload: [toSnakeCase(DeviceDraft), Schema.Null],
    success: Envelope(DeviceRecord),
    error: [DeviceNamesTaken, NoSuchProduct, NotACloudGateway, QuotaExceeded]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Create a device")
    .annotate(
      OpenApi.Description,
      "The device starts enabled and unactive, with a new triple. The body may be left out. A `device_name` of " +
        "your own must be free in the product."
    ),
  HttpApiEndpoint.get("listDevices", "/things", { query: listQuery, success: Paged(DeviceInfo) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List the devices of the project")
    .annotate(OpenApi.Description, "All given filters must hold."),
  HttpApiEndpoint.get("getDevice", "/things/:device_id/detail", {
    params: PathParams.deviceId,
    success: OneDevice,
    error: NoSuchDevice
  })
    .annotate(OpenApi.Summary, "Read a device by its id"),
  HttpApiEndpoint.get("getDeviceByName", "/products/:product_key/device-names/:device_name/detail", {
    params: PathParams.deviceName,
    success: OneDevice,
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read a device by its product key and name"),
  HttpApiEndpoint.get("getDeviceStatus", "/things/:device_id/status", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({ status: DeviceStatus })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read whether a device is connected"),
  HttpApiEndpoint.get("listConnectRefusals", "/things/:device_id/connect-refusals", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({ results: Schema.Array(Refusal) })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read why a device could not connect")
    .annotate(OpenApi.Description, "The latest 20, those that are equal counted as one."),
  HttpApiEndpoint.get("readPresence", "/things/:device_id/presence", {
    params: PathParams.deviceId,
    query: {
      before: Schema.optional(
        Schema.String.check(Schema.makeFilter(isFeedPlace, {
          expected: "the cursor of a page before"
        })).annotate({ description: "The `cursor` of the page before: what was earlier" })
      ),
      limit: Schema.optional(
        PathParams.wholeNumber(maxPresenceChanges, 1).annotate({
          description: `1 to ${maxPresenceChanges}; default 100`
        })
      )
    },
    success: Envelope(Schema.Struct({
      status: DeviceStatus,
      since: DateText.annotate({ description: "Since when it has this status; empty: it was never online" }),
      cursor: Schema.String.annotate({ description: "Give it as `before` to read what was earlier; empty: nothing" }),
      results: Schema.Array(PresenceChange).annotate({ description: "The latest first" })
    })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read when a device was online, through what, and why that ended")
    .annotate(OpenApi.Description, "As long as events are kept: 7 days by default."),
  HttpApiEndpoint.put("changeDevice", "/things/:device_id", {
    params: PathParams.deviceId,
    payload: DeviceChanges.annotate({ examples: [{ nickname: "Hall" }] }),
    success: EnvelopeOnly,
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Change the nickname of a device"),
  HttpApiEndpoint.put("changeDeviceStatus", "/things/:device_id/status", {
    params: PathParams.deviceId,
    payload: Schema.Struct({ action: Action }).annotate({ examples: [{ action: "disable" }] }),
    success: EnvelopeOnly,
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Enable, disable, bind or unbind a device")
    .annotate(OpenApi.Description, "A disabled device is disconnected and cannot connect."),
  HttpApiEndpoint.delete("deleteDevice", "/things/:device_id", {
    params: PathParams.deviceId,
    success: EnvelopeOnly,
    error: NoSuchDevice
  })
    .annotate(OpenApi.Summary, "Delete a device with all that is kept about it"),
  HttpApiEndpoint.get("getDeviceProperties", "/things/:device_id/properties", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({ properties: PropertyValues })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read the latest property values of a device"),
  HttpApiEndpoint.get("getDeviceShadow", "/things/:device_id/shadow", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({ thing_shadow: ThingShadow })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read the shadow of a device"),
  HttpApiEndpoint.put("updateDeviceShadow", "/things/:device_id/shadow", {
    params: PathParams.deviceId,
    payload: Schema.Struct({
      state: Schema.Struct({
        desired: PropertyValues,
        reported: Schema.optional(Schema.Null.annotate({ message: "Expected nothing: only the device reports" }))
      }),
      version: Schema.optional(
        Schema.Int.annotate({ description: "Fails when the shadow is in another version" })
      )
    }).annotate({ examples: [{ state: { desired: { TargetTemperature: 21.5, Alias: null } } }] }),
    success: EnvelopeOnly,
    error: [NoSuchDevice, InvalidValue, ShadowVersionConflict]
  }).annotate(OpenApi.Summary, "Change the desired properties of a device")
    .annotate(
      OpenApi.Description,
      "Merged into the desired properties; null removes one. The device gets the change now, or when it comes back."
    ),
  HttpApiEndpoint.delete("removeReportedProperty", "/things/:device_id/shadow/reported/:property_id", {
    params: PathParams.property,
    success: EnvelopeOnly,
    error: [NoSuchDevice, PropertyNotReported]
  }).annotate(OpenApi.Summary, "Remove a reported value from the shadow of a device"),
  HttpApiEndpoint.post("rotateDeviceSecret", "/things/:device_id/secret", {
    params: PathParams.deviceId,
    payload: [RotationDraft, Schema.Null],
    success: Envelope(Schema.Struct({
      device_secret: Schema.String,
      previous_valid_until: DateText.annotate({ description: "RFC 3339; empty: the secret before counts no more" })
    })),
    error: NoSuchDevice
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Give a device a new secret")
    .annotate(OpenApi.Description, "The secret before counts for `overlap` seconds more, an hour by default."),
  HttpApiEndpoint.put("setDeviceDiagnosis", "/things/:device_id/diagnosis", {
    params: PathParams.deviceId,
    payload: Schema.Struct({ enabled: Schema.Boolean }),
    success: EnvelopeOnly,
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Ask a device for its logs, or no more")
    .annotate(OpenApi.Description, "What it sends are events `log` and `diag`."),
  HttpApiEndpoint.put("setDeviceTags", "/things/:device_id/tags", {
    params: PathParams.deviceId,
    payload: Schema.Struct({ tags: Tags }).annotate({ examples: [{ tags: { room: "kitchen" } }] }),
    success: EnvelopeOnly,
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Replace the tags of a device")
).annotate(OpenApi.Title, "Devices") {}
