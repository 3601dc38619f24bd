/**
 * A typed client of the management API, for applications in other processes.
 */
import { Context, Layer, type Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { Authorization } from "./middleware/Authorization.ts"
import { Api } from "./DeviceCloudApi.ts"

/** A member for each group of the API, with a function for each of its operations. */
export class DeviceCloudClient extends Context.Service<DeviceCloudClient, HttpApiClient.ForApi<typeof Api>>()(
  "@device-cloud/http/DeviceCloudClient"
) {
  /** Over `fetch`. `baseUrl`: for example `http://127.0.0.1:8080`. */
  static readonly layer = (options: {
    readonly baseUrl: string
    readonly accessKey: Redacted.Redacted
  }): Layer.Layer<DeviceCloudClient> =>
    Layer.effect(DeviceCloudClient, HttpApiClient.make(Api, { baseUrl: options.baseUrl })).pipe(
      Layer.provide([Authorization.layerClient(options.accessKey), FetchHttpClient.layer])
    )
}
