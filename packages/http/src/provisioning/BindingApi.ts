/**
 * The routes by which an application finds out that a device has joined
 * (docs/api/provisioning.md).
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { RandomNotReported } from "./ProvisioningFailures.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

const path = "/products/:product_key/device-names/:device_name/bind"

const Random = Envelope(Schema.Struct({ random: Schema.String.annotate({ description: "8 to 32 characters" }) }))

/** The group `bindings` of the typed client. */
export class BindingApi extends HttpApiGroup.make("bindings").add(
  HttpApiEndpoint.get("getBindRandom", path, {
    params: PathParams.deviceName,
    success: Random,
    error: [NoSuchDevice, RandomNotReported]
  })
    .annotate(OpenApi.Summary, "Read the random that a device has reported after joining")
    .annotate(OpenApi.Description, "A success means that the device has been provisioned; before, the code is 40910."),
  HttpApiEndpoint.post("createBindRandom", path, {
    params: PathParams.deviceName,
    success: Random,
    error: NoSuchDevice
  }).middleware(IdempotencyMiddleware)
    .annotate(OpenApi.Summary, "Make the random that a device must report after joining")
    .annotate(
      OpenApi.Description,
      "For ten minutes, only a report with this random counts. The cloud forgets an earlier report."
    )
).annotate(OpenApi.Title, "Binding") {}
