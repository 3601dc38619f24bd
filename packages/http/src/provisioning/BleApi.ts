/**
 * The route by which an application checks a device that it speaks to over
 * Bluetooth (docs/api/provisioning.md).
 */
import { BleProof, DeviceName } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { DeviceDisabled, NoSuchDevice } from "../device/DeviceFailures.ts"
import { WrongCipher } from "./ProvisioningFailures.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

/** The group `ble` of the typed client. */
export class BleApi extends HttpApiGroup.make("ble").add(
  HttpApiEndpoint.post("checkBleIdentity", "/auth/ble/products/:product_key/identity", {
    params: PathParams.productKey,
    payload: toSnakeCase(BleProof).annotate({
      examples: [{
        device_name: DeviceName.make("dev001"),
        random: "000102030405060708090a0b0c0d0e0f",
        cipher: "0cddca1f872c3c2b3e80326124593c37"
      }]
    }),
    success: Envelope(
      Schema.Struct({
        ble_key: Schema.String.annotate({ description: "32 hex digits: the AES-128 key of the exchange that follows" })
      })
    ),
    error: [NoSuchDevice, DeviceDisabled, WrongCipher]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Check a device over Bluetooth")
    .annotate(
      OpenApi.Description,
      "The application sends 16 bytes, `random`, to the device, which replies with `cipher`. Both are hex."
    )
).annotate(OpenApi.Title, "Bluetooth identity") {}
