/**
 * The routes that devices call. A signature takes the place of an access key
 * (docs/protocol/provisioning.md, docs/protocol/http-uplink.md).
 */
import { NamedRegistration, Registration, Text } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { SecureWayNeeded } from "../middleware/SecureDevices.ts"
import { uplinkRefusals } from "./UplinkRefusals.ts"
import { DeviceDisabled, NoSuchDevice } from "../device/DeviceFailures.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import {
  AlreadyActive,
  CertificateRefused,
  CertificateRequired,
  NoDeviceLeft,
  ProofRefused,
  RandomUsed,
  RegistrationOff,
  SubDeviceOnly,
  TooManyRandoms,
  TooManyWrongSignatures,
  UnfreshSignature,
  WrongSignature
} from "../provisioning/ProvisioningFailures.ts"
import { QuotaExceeded, TooManyRegistrations } from "../project/ProjectFailures.ts"

const Triple = Schema.Struct({
  product_key: Schema.String,
  device_name: Schema.String,
  device_secret: Schema.String
}).annotate({ identifier: "Triple" })

/** What a client certificate takes the place of. */
const signedOnly = "Required unless the device presents its client certificate"

const uplinkQuery = {
  product_key: PathParams.productKey.product_key,
  device_name: PathParams.deviceName.device_name,
  sign_method: Schema.optional(Schema.Literals(["hmacsha256", "hmacsha1"]).annotate({ description: signedOnly })),
  random: Schema.optional(
    Text(16).check(Schema.isMinLength(8)).annotate({ description: `8 to 16 characters. ${signedOnly}` })
  ),
  timestamp: Schema.optional(
    Schema.String.check(Schema.isPattern(/^\d{1,16}$/u, { expected: "Unix milliseconds in 1 to 16 digits" })).annotate({
      description: "Unix milliseconds; signed if it is sent"
    })
  ),
  content_sha256: Schema.optional(
    Schema.String.check(Schema.isPattern(/^[0-9A-Fa-f]{64}$/u, { expected: "64 hex digits" })).annotate({
      description: "SHA-256 of the bytes of the body in hex; signed as it is sent"
    })
  ),
  sign: Schema.optional(
    Schema.String.annotate({
      description:
        "Of `productKey` + product_key + `deviceName` + device_name + `random` + random, then `timestamp` + " +
        `timestamp and \`contentSha256\` + content_sha256 if they are sent, with the device's secret; hex or base64. ${signedOnly}`
    })
  ),
  action: Schema.String.annotate({
    description: "What the device says: PostProperty, PostEvent, PostServiceReply, PostHex, PostSubHex, PostModbus, " +
      "PostModbusSub, PostStarTopo, PostMeshTopo, PostShadow, PostOTA, PostNTP, PostSysMsg, PostRemoteDiagnosis, or " +
      "an action that a device method of the application declares"
  }),
  event_id: Schema.optional(Schema.String.annotate({ description: "Of PostEvent" })),
  service_id: Schema.optional(Schema.String.annotate({ description: "Of PostServiceReply" })),
  method: Schema.optional(
    Schema.String.annotate({
      description: "Of PostStarTopo: add, delete, get, login, logout; of PostMeshTopo: add, delete, get"
    })
  ),
  pull: Schema.optional(
    Schema.Literals(["0", "1"]).annotate({
      description: "1: the response carries the commands that wait for the device"
    })
  )
}

const UplinkQuery = Schema.Struct(uplinkQuery)
/** The query of `POST /thing-uplink`. */
export type UplinkQuery = typeof UplinkQuery.Type

const PendingCommand = Schema.Struct({
  id: Schema.String,
  version: Schema.String,
  method: Schema.String,
  params: Schema.Json
})

/** The group `device-access` of the typed client. */
export class DeviceAccessApi extends HttpApiGroup.make("device-access").add(
  HttpApiEndpoint.post("registerDevice", "/auth/register/device", {
    payload: toSnakeCase(Registration),
    success: Envelope(Triple),
    error: [
      NoSuchProduct,
      RegistrationOff,
      DeviceDisabled,
      AlreadyActive,
      NoDeviceLeft,
      SecureWayNeeded,
      WrongSignature,
      TooManyRegistrations,
      TooManyWrongSignatures
    ]
  }).annotate(OpenApi.Summary, "Get a triple that was created beforehand")
    .annotate(
      OpenApi.Description,
      "`sign` of `mac` + mac + `productKey` + product_key + `random` + random with the product's secret, in hex. The " +
        "same mac gets the same triple until its device has been active."
    ),
  HttpApiEndpoint.post("generateDevice", "/auth/generator/device", {
    payload: toSnakeCase(NamedRegistration),
    success: Envelope(Triple),
    error: [
      NoSuchProduct,
      RegistrationOff,
      DeviceDisabled,
      AlreadyActive,
      QuotaExceeded,
      SecureWayNeeded,
      WrongSignature,
      TooManyRegistrations,
      TooManyWrongSignatures
    ]
  }).annotate(OpenApi.Summary, "Get a triple with a name of the device's own")
    .annotate(
      OpenApi.Description,
      "`sign` of `deviceName` + device_name + `productKey` + product_key + `random` + random with the product's " +
        "secret, in hex. The same name gets the same triple until its device has been active."
    ),
  HttpApiEndpoint.post("uplink", "/thing-uplink", {
    query: uplinkQuery,
    payload: [
      Schema.Json,
      Schema.String.pipe(HttpApiSchema.asText()),
      Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array())
    ],
    success: Schema.Struct({
      ...Envelope(Schema.Json).fields,
      data_pending: Schema.optionalKey(
        Schema.Array(PendingCommand).annotate({ description: "With `pull=1`: the commands that wait for the device" })
      )
    }),
    // First those with the code of the device protocol, which others of the same code would leave out.
    error: [
      ...uplinkRefusals,
      NoSuchDevice,
      DeviceDisabled,
      SecureWayNeeded,
      WrongSignature,
      ProofRefused,
      CertificateRequired,
      CertificateRefused,
      SubDeviceOnly,
      UnfreshSignature,
      RandomUsed,
      TooManyRandoms,
      TooManyWrongSignatures
    ]
  }).annotate(OpenApi.Summary, "Send a message of a device")
    .annotate(
      OpenApi.Description,
      "The body is the message of the MQTT topic that the action stands for; `data` is the data of its reply. PostHex " +
        "and PostSubHex also take bytes, or hex as text."
    )
).annotate(OpenApi.Title, "Device access")
  .annotate(OpenApi.Description, "For devices, which send signatures in the place of access keys.")
{}
