/**
 * The routes of gateways and their sub-devices (docs/api/gateways.md).
 */
import { AddSessionDraft, SignedSubDevice, Text } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { DeviceDisabled, NoSuchDevice } from "../device/DeviceFailures.ts"
import {
  AddSessionEnded,
  BelongsToOtherGateway,
  NoSuchAddSession,
  NoSuchSubDevice,
  NotAGateway,
  NotASubDevice,
  TooManySubDevices
} from "./TopologyFailures.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { TooManyWrongSignatures, WrongSignature } from "../provisioning/ProvisioningFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

const sessionId = Text(128).annotate({ description: "The add-session that `sub.add.start` returned" })

const SubDeviceName = Schema.Struct({ device_name: Text(128), product_key: Text(128) })

/** A sub-device of a gateway. */
export const SubDevice = Schema.Struct({
  device_name: Schema.String,
  product_key: Schema.String,
  device_id: Schema.String
}).annotate({ identifier: "SubDevice" })

/** The time in which sub-devices may join a gateway. */
export const OpenAddSession = Schema.Struct({
  session_id: Schema.String,
  product_keys: Schema.Array(Schema.String).annotate({ description: "Products that may join; empty: all" }),
  started_at: DateText,
  ends_at: DateText
}).annotate({ identifier: "OpenAddSession" })

const SubDevices = Envelope(Schema.Struct({ sub_devices: Schema.Array(SubDevice) }))

/** The group `topology` of the typed client. */
export class TopologyApi extends HttpApiGroup.make("topology").add(
  HttpApiEndpoint.put("changeTopology", "/things/:device_id/topo", {
    params: PathParams.deviceId,
    payload: Schema.Struct({
      action: Schema.Literals(["sub.add.start", "sub.add.stop"]),
      session_id: Schema.optional(sessionId.annotate({ description: "Of `sub.add.stop`: the add-session to end" })),
      params: Schema.optional(toSnakeCase(AddSessionDraft))
    }),
    success: Schema.Union([Envelope(Schema.Struct({ session_id: Schema.String })), EnvelopeOnly]),
    error: [NoSuchDevice, NoSuchProduct, NotAGateway, NotASubDevice, NoSuchAddSession, AddSessionEnded]
  }).annotate(OpenApi.Summary, "Let a gateway look for sub-devices, or stop it")
    .annotate(
      OpenApi.Description,
      "`sub.add.start` lets sub-devices join for `timeout` seconds (1 to 3600, default 60) and returns the session. " +
        "A gateway has one at a time; a new one replaces it."
    ),
  HttpApiEndpoint.get("listTopology", "/things/:device_id/topo", {
    params: PathParams.deviceId,
    success: SubDevices,
    error: [NoSuchDevice, NotAGateway]
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List all sub-devices of a gateway"),
  HttpApiEndpoint.get("readGateway", "/things/:device_id/topo/gateway", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({
      gateway: Schema.NullOr(SubDevice.annotate({ identifier: "Gateway" })).annotate({
        description: "Null: the device belongs to none"
      })
    })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Read which gateway a sub-device belongs to"),
  HttpApiEndpoint.get("readAddSession", "/things/:device_id/topo/session", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({
      session: Schema.NullOr(OpenAddSession).annotate({ description: "Null: no session is open" })
    })),
    error: [NoSuchDevice, NotAGateway]
  }).annotate(OpenApi.Summary, "Read the add-session that a gateway has open"),
  HttpApiEndpoint.get("listAddedSubDevices", "/things/:device_id/topo/sub-devices", {
    params: PathParams.deviceId,
    query: { session_id: sessionId },
    success: SubDevices,
    error: [NoSuchDevice, NotAGateway, NoSuchAddSession]
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the sub-devices that were added in a session")
    .annotate(OpenApi.Description, "Readable for a day after the end of the session."),
  HttpApiEndpoint.post("addSubDevices", "/things/:device_id/topo/sub-devices", {
    params: PathParams.deviceId,
    query: { session_id: sessionId },
    payload: Schema.Struct({ params: Schema.Array(toSnakeCase(SignedSubDevice)) }),
    success: Envelope(Schema.Array(SubDevice)),
    error: [
      NoSuchDevice,
      NoSuchProduct,
      NotAGateway,
      NotASubDevice,
      NoSuchAddSession,
      AddSessionEnded,
      BelongsToOtherGateway,
      TooManySubDevices,
      DeviceDisabled,
      WrongSignature,
      TooManyWrongSignatures
    ]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Add sub-devices to a gateway")
    .annotate(
      OpenApi.Description,
      "All or none, 1 to 1500. `sign` is the hex signature of `deviceName`, the device name, `productKey` and the " +
        "product key under the secret of the sub-device."
    ),
  HttpApiEndpoint.delete("removeSubDevices", "/things/:device_id/topo/sub-devices", {
    params: PathParams.deviceId,
    payload: Schema.Struct({ params: Schema.Array(SubDeviceName) }),
    success: EnvelopeOnly,
    error: [NoSuchDevice, NoSuchSubDevice, NotAGateway, BelongsToOtherGateway]
  }).annotate(OpenApi.Summary, "Remove sub-devices from a gateway")
    .annotate(OpenApi.Description, "All or none, 1 to 1500.")
).annotate(OpenApi.Title, "Gateway topology") {}
