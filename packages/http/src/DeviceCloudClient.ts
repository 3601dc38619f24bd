/**
 * A typed client of the management API, for applications in other processes.
 */
import { Context, Effect, Layer, type Redacted, Schema, SchemaIssue } from "effect"
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

/** An id that is empty or dots is not sent: without it, the path would lead to another operation. */
const withNamedParts = (client: HttpClient.HttpClient) =>
  HttpClient.mapRequestEffect(client, (request) =>
    /\/\.{0,2}(?:\/|$)/.test(request.url)
      ? Effect.fail(
        new Schema.SchemaError(
          new SchemaIssue.InvalidValue({ message: `Expected ids that are not empty, . or .. in ${request.url}` })
        )
      )
      : Effect.succeed(request)) as HttpClient.HttpClient // Each operation may fail with a `SchemaError`.
