/**
 * The management API of a server, with promises.
 */
import { type Api as ApiDefinition, Code, DeviceCloudClient } from "@device-cloud/http"
import { Context, Effect, Layer, Redacted, type Schema, Scope } from "effect"
import type { HttpClientError } from "effect/http"
import type { HttpApi, HttpApiClient, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { type CloudEvent, eventsOf, type EventSource, type SubscribeOptions, wait } from "./EventLoop.ts"
import type { Given, Runner } from "./Promised.ts"
import { runnerOf } from "./Run.ts"

/** The server, and who calls it. */
export interface ConnectOptions {
  /** For example `http://127.0.0.1:8080`. */
  readonly baseUrl: string
  /** `dck_…` */
  readonly accessKey: string | Redacted.Redacted
}

/** An operation of the API. Its promise has the `data` of the response. */
export type Operation<Endpoint extends HttpApiEndpoint.ConstraintRequest> = (
  ...args: IsEmptyable<RequestOf<PartsOf<ClientRequest<Endpoint>>>> extends true
    ? [request?: RequestOf<PartsOf<ClientRequest<Endpoint>>>]
    : [request: RequestOf<PartsOf<ClientRequest<Endpoint>>>]
) => Promise<DataOf<HttpApiClient.SuccessType<Endpoint["~Success"]>>>

/** The groups of the API with their operations. The stream of `events` never ends: `subscribe` has them one by one. */
export type Operations = {
  readonly [Group in ApiGroup as Exclude<Group["identifier"], "events">]: {
    readonly [Endpoint in EndpointOf<Group> as Endpoint["identifier"]]: Operation<Endpoint>
  }
}

/** Has a member for each group of the API but `events`, with a function for each of its operations. */
export interface Api extends Operations {
  /**
   * The events of the subscription with this name, which is created if there is
   * none. An event is acknowledged when the loop asks for the next one: if it ends
   * before, by `break` or an error, the event comes again. While the server is away,
   * the loop waits for it.
   *
   * ```ts
   * for await (const event of api.subscribe("billing", { filter: { types: ["property"] } })) {
   *   if (event.type === "property") await charge(event.data.device_id, event.data.properties)
   * }
   * ```
   */
  readonly subscribe: (name: string, options?: ApiSubscribeOptions) => AsyncIterable<CloudEvent>
  /** The same, whose calls and loops end when the signal aborts. They reject with its reason. */
  readonly withSignal: (signal: AbortSignal) => Api
}

/** How a subscription of the API is read. `filter` and `start` count if it is created. */
export interface ApiSubscribeOptions
  extends SubscribeOptions, Pick<PartsOf<ClientRequest<CreateSubscription>>["payload"], "filter" | "start">
{}

/** The failures of all operations. */
export type ApiFailures =
  | HttpApiEndpoint.Errors<EndpointOf<ApiGroup>>
  | HttpClientError.HttpClientError
  | Schema.SchemaError

/** Keys that a header can have. With another one no request leaves, and a loop over `subscribe` waits for ever. */
const sendable = /^[!-~]+[\t\n\r ]*$/

/**
 * The management API of a server. Throws a `TypeError` if `baseUrl` is no URL of
 * HTTP or has a name, a password or a query, or if there is no key that can be sent,
 * such as that of a variable of the environment that is not set.
 *
 * ```ts
 * const api = connect({ baseUrl: "http://127.0.0.1:8080", accessKey: "dck_…" })
 * const { results } = await api.devices.listDevices({ query: { status: "online" } })
 * ```
 */
export const connect = ({ accessKey, baseUrl }: ConnectOptions): Api => {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.href !== url.origin + url.pathname) {
    throw new TypeError("baseUrl: expected a URL such as http://127.0.0.1:8080, without name, password and query")
  }
  const key = Redacted.isRedacted(accessKey) ? accessKey : Redacted.make(accessKey)
  if (!accessKey || !sendable.test(Redacted.value(key))) {
    throw new TypeError("accessKey: expected an access key such as dck_…")
  }
  const context = Effect.runSync(
    Layer.buildWithScope(DeviceCloudClient.layer({ baseUrl: url.href, accessKey: key }), Scope.makeUnsafe())
  )
  return apiOf(Context.get(context, DeviceCloudClient), runnerOf(Context.empty(), undefined))
}

type Client = DeviceCloudClient["Service"]

const apiOf = (client: Client, runner: Runner): Api => ({
  ...operationsOf(client, runner),
  subscribe: (name, options) => runner.iterable(eventsOf(sourceOf(client, name, options), isPassing, options?.missed)),
  withSignal: (signal) => apiOf(client, runner.withSignal(signal))
})

const operationsOf = ({ events: _endless, ...groups }: Client, runner: Runner): Operations =>
  Object.fromEntries(
    Object.entries(groups).map(([name, group]) => [
      name,
      Object.fromEntries(
        Object.entries(group as object as Readonly<Record<string, (request: object) => Effect.Effect<unknown>>>).map(
          ([name, operation]) => [
            name,
            (request?: object) =>
              runner.promise(operation({ params: {}, query: {}, headers: {}, payload: {}, ...request })).then(dataOf)
          ]
        )
      )
    ])
  ) as never

const dataOf = (response: unknown): unknown =>
  typeof response === "object" && response !== null && "code" in response
    ? "data" in response ? response.data : undefined
    : response

/** The subscription with this name; it is created if there is none. */
const find = Effect.fnUntraced(function*(
  { subscriptions }: Client,
  name: string,
  { filter, start }: Draft
) {
  for (let page = 1;; page++) {
    const { data } = yield* subscriptions.listSubscriptions({ query: { page, page_size: 100 } })
    const found = data.results.find((subscription) => subscription.name === name)
    if (found !== undefined) return found.subscription_id
    if (page >= data.pages) break
  }
  const { data } = yield* subscriptions.createSubscription({
    payload: { name, ...filter === undefined ? {} : { filter }, ...start === undefined ? {} : { start } }
  })
  return data.subscription_id
})

/** The same, if another loop creates it at the same moment: the next attempt finds it. */
const found = (client: Client, name: string, draft: Draft) =>
  Effect.retry(find(client, name, draft), {
    while: (failure) => "code" in failure && failure.code === Code.taken,
    times: 3
  })

/** What a loop reads. */
const sourceOf = (client: Client, name: string, options: ApiSubscribeOptions = {}) =>
  Effect.map(found(client, name, options as Draft), (subscription_id) => {
    const { acknowledgeSubscriptionEvents, readSubscriptionEvents } = client.subscriptions
    const { limit, worker } = options
    const params = { subscription_id }
    const source: EventSource<ApiFailures> = {
      read: Effect.map(
        readSubscriptionEvents({ params, query: { worker, limit, wait: wait / 1000 }, headers: {} }),
        (response) => {
          // Without the header `Accept: text/event-stream` it is a page.
          const { cursor, gap, results } = (response as Exclude<typeof response, string>).data
          return { cursor, events: results as ReadonlyArray<unknown> as ReadonlyArray<CloudEvent>, isGap: gap }
        }
      ),
      acknowledge: (cursor) => acknowledgeSubscriptionEvents({ params, payload: { cursor, worker } }),
      isLost: (failure) => "code" in failure && failure.code === Code.leaseLost
    }
    return source
  })

/** Whether the server is away, has gone in the middle of a response, or has no room for now. */
const isPassing = (failure: ApiFailures): boolean => {
  if ("code" in failure) {
    return failure.code === Code.tooMany || failure.code === Code.storageUnreachable || failure.code === Code.internal
  }
  if (failure._tag !== "HttpClientError") return false
  const { reason, response } = failure
  return response === undefined || response.status >= 500 ||
    // The body that `fetch` cannot read to its end is the cause. Text of another form has none.
    reason._tag === "DecodeError" && reason.cause !== undefined
}

/** The groups for back ends; that of devices has failures in the form of devices. */
type ApiGroup = typeof ApiDefinition extends HttpApi.HttpApi<infer _Id, infer Groups>
  ? Exclude<Groups, { readonly identifier: "device-access" }>
  : never

type EndpointOf<Group> = HttpApiGroup.Endpoints<Group>

/** What counts when a subscription is created. */
type Draft = Pick<ClientRequest<CreateSubscription>["payload"], "filter" | "start">

type CreateSubscription = Extract<EndpointOf<ApiGroup>, { readonly identifier: "createSubscription" }>

type ClientRequest<Endpoint extends HttpApiEndpoint.ConstraintRequest> = HttpApiEndpoint.ClientRequest<
  Endpoint["~Params"],
  Endpoint["~Query"],
  Endpoint["~Payload"],
  Endpoint["~Headers"],
  "decoded-only"
>

/** The parts of a request: `params`, `query`, `headers`, `payload`. */
type PartsOf<Request> = Given<Omit<Exclude<Request, void>, "responseMode" | "sseOptions">>

/** The same; what may be empty may be left out. */
type RequestOf<Parts> =
  & { readonly [Part in keyof Parts as IsEmptyable<Parts[Part]> extends true ? never : Part]: Parts[Part] }
  & { readonly [Part in keyof Parts as IsEmptyable<Parts[Part]> extends true ? Part : never]?: Parts[Part] }

type IsEmptyable<Value> = Partial<Value> extends Value ? true : false

/** The `data` of a response; text is itself. */
type DataOf<Response> = Response extends { readonly data: infer Data } ? Data
  : Response extends string ? Response
  : void
