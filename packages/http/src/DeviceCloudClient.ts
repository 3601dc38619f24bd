/**
 * A typed client of the management API, for applications in other processes.
 */
import { Context, Effect, Layer, type Redacted, Schema } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { Authorization } from "./middleware/Authorization.ts"
import { Api } from "./DeviceCloudApi.ts"

/**
 * Has a member for each group of the API, with a function for each of its
 * operations. A function fails with the failures that its operation declares.
 *
 * ```ts
 * const client = yield* DeviceCloudClient
 * const { data } = yield* client.devices.getDevice({ params: { device_id: deviceId } }).pipe(
 *   Effect.catchIf((error) => "code" in error && error.code === Code.noSuchDevice, () => Effect.succeed({ data: null }))
 * )
 * ```
 */
export class DeviceCloudClient extends Context.Service<DeviceCloudClient, HttpApiClient.ForApi<typeof Api>>()(
  "@device-cloud/http/DeviceCloudClient"
) {
  /** Calls a server with `fetch`. `baseUrl` is for example `http://127.0.0.1:8080`. */
  static readonly layer = (options: {
    readonly baseUrl: string
    readonly accessKey: Redacted.Redacted
  }): Layer.Layer<DeviceCloudClient> =>
    Layer.effect(
      DeviceCloudClient,
      HttpApiClient.make(Api, { baseUrl: options.baseUrl, transformClient: withNamedParts })
    ).pipe(
      Layer.provide([Authorization.layerClient(options.accessKey), FetchHttpClient.layer])
    )
}

/** The path of an operation. With an id that is empty or dots, it would lead to another one. */
const NamedParts = Schema.String.check(
  Schema.makeFilter((path) => !/\/\.{0,2}(?:\/|$)/.test(path) || "Expected ids that are not empty, . or ..")
)

const withNamedParts = (client: HttpClient.HttpClient) =>
  HttpClient.mapRequestEffect(
    client,
    (request) => Effect.as(Schema.decodeEffect(NamedParts)(request.url), request)
  ) as HttpClient.HttpClient // Each operation may fail with a `SchemaError`.
