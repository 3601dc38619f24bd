/**
 * The routes of remote configurations (docs/api/configurations.md).
 */
import { ConfigurationDraft, ConfigurationFormat, ConfigurationState } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import { NoSuchDeviceGroup } from "../group/DeviceGroupFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import { FileTooLarge } from "../object/ObjectFailures.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { QuotaExceeded } from "../project/ProjectFailures.ts"
import { NoConfiguration, TooManyPushes } from "./ConfigurationFailures.ts"

/** One version of a configuration. */
export const ConfigurationInfo = Schema.Struct({
  configuration_id: Schema.String.annotate({ description: "Devices know it as configId" }),
  version: Schema.Int.annotate({ description: "Grows by one with each change" }),
  format: ConfigurationFormat,
  content: Schema.String,
  size: Schema.Int.annotate({ description: "Bytes" }),
  sha256: Schema.String,
  url: Schema.String,
  created_at: DateText
}).annotate({ identifier: "Configuration" })

const One = Envelope(ConfigurationInfo)
const Versions = Envelope(Schema.Struct({ results: Schema.Array(ConfigurationInfo) }))

const draft = ConfigurationDraft.annotate({ examples: [{ format: "json", content: "{\"interval\":60}" }] })

/** The group `configurations` of the typed client. */
export class ConfigurationApi extends HttpApiGroup.make("configurations").add(
  HttpApiEndpoint.put("putProductConfiguration", "/products/:product_key/configuration", {
    params: PathParams.productKey,
    payload: draft,
    success: One,
    error: [NoSuchProduct, FileTooLarge, QuotaExceeded]
  }).annotate(OpenApi.Summary, "Store the next configuration of a product"),
  HttpApiEndpoint.get("listProductConfigurations", "/products/:product_key/configuration", {
    params: PathParams.productKey,
    success: Versions,
    error: NoSuchProduct
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read the kept configurations of a product, newest first"),
  HttpApiEndpoint.delete("deleteProductConfiguration", "/products/:product_key/configuration", {
    params: PathParams.productKey,
    success: EnvelopeOnly,
    error: NoSuchProduct
  }).annotate(OpenApi.Summary, "Remove the configurations of a product"),
  HttpApiEndpoint.post("pushProductConfiguration", "/products/:product_key/configuration/push", {
    params: PathParams.productKey,
    success: EnvelopeOnly,
    error: [NoSuchProduct, NoConfiguration, TooManyPushes]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Send their configuration to the connected devices")
    .annotate(OpenApi.Description, "In the background, at most 50 devices a second."),
  HttpApiEndpoint.post("pushGroupConfiguration", "/device-groups/:group_id/configuration/push", {
    params: PathParams.deviceGroup,
    success: EnvelopeOnly,
    error: [NoSuchDeviceGroup, TooManyPushes]
  }).middleware(IdempotencyMiddleware)
    .annotate(OpenApi.Summary, "Send their configuration to the connected devices of a group")
    .annotate(OpenApi.Description, "In the background, at most 50 devices a second."),
  HttpApiEndpoint.get("listConfigurationProgress", "/products/:product_key/configuration/devices", {
    params: PathParams.productKey,
    query: pageQuery,
    success: Paged(Schema.Struct({
      device_id: Schema.String,
      configuration_id: Schema.String,
      state: ConfigurationState.annotate({ description: "applied: the device has confirmed a push" }),
      at: DateText
    })),
    error: NoSuchProduct
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List what devices know of their configuration"),
  HttpApiEndpoint.put("putDeviceConfiguration", "/things/:device_id/configuration", {
    params: PathParams.deviceId,
    payload: draft,
    success: One,
    error: [NoSuchDevice, FileTooLarge, QuotaExceeded]
  }).annotate(OpenApi.Summary, "Store the next configuration of one device, which wins over that of its product"),
  HttpApiEndpoint.get("listDeviceConfigurations", "/things/:device_id/configuration", {
    params: PathParams.deviceId,
    success: Versions,
    error: NoSuchDevice
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read the kept configurations of a device, newest first"),
  HttpApiEndpoint.delete("deleteDeviceConfiguration", "/things/:device_id/configuration", {
    params: PathParams.deviceId,
    success: EnvelopeOnly,
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "Remove the configurations of a device: that of its product counts again"),
  HttpApiEndpoint.post("pushDeviceConfiguration", "/things/:device_id/configuration/push", {
    params: PathParams.deviceId,
    success: EnvelopeOnly,
    error: [NoSuchDevice, NoConfiguration, TooManyPushes]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Send its configuration to a connected device")
).annotate(OpenApi.Title, "Remote configuration") {}
