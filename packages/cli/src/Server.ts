/**
 * Which server a command speaks to, with which access key, and how it calls it.
 */
import { DeviceCloudClient } from "@device-cloud/http"
import { Context, Duration, Effect, FileSystem, Layer, Option, Path, Redacted } from "effect"
import { HttpBody, HttpClient, HttpClientRequest } from "effect/http"
import * as ConfigFile from "./ConfigFile.ts"
import { type CommandFailure, explain, failure, isApiFailure, usage } from "./CommandFailure.ts"
import { Key, Profile, Url } from "./GlobalFlags.ts"

/** Where a server is, and its access key. */
export interface Target {
  /** Without a slash at its end. */
  readonly url: string
  /** Undefined: nobody has said one. */
  readonly key: Redacted.Redacted | undefined
  /** Where the key comes from, for a reader. */
  readonly keyFrom: string
}

/** A request to the management API. */
export interface ApiRequest {
  readonly method: string
  /** Below `/openapi/v1`, with its parameters filled in. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** Sent as JSON. */
  readonly body?: unknown
}

/**
 * The server of a command: that of the flags, of the environment, of the
 * configuration file, or one that was started in this folder, in this order.
 */
export class Server extends Context.Service<Server, {
  readonly url: string
  readonly key: Redacted.Redacted
  /** Calls the API. Returns the envelope of a success, or the text of a response that is not JSON. */
  readonly call: (request: ApiRequest) => Effect.Effect<Envelope | string, CommandFailure>
}>()("@device-cloud/cli/Server") {
  /** Fails if there is no access key for the server. */
  static readonly layer = Layer.unwrap(Effect.map(
    Effect.suspend(() => required),
    ({ key, url }) =>
      Layer.merge(
        Layer.effect(Server, make(url, key)),
        DeviceCloudClient.layer({ baseUrl: url, accessKey: key })
      )
  ))
}

/** The body of a success. */
export interface Envelope {
  readonly code: 0
  readonly message: string
  readonly data?: unknown
}

/** The address of a server that was started without configuration. */
export const localUrl = "http://127.0.0.1:8080"

/** What a server that was started in this folder keeps there. */
export const localFolder = ".device-cloud"

/** Finds the server of a command. */
export const target = Effect.gen(function*() {
  const profileName = Option.getOrUndefined(yield* given(yield* Profile, "DEVICE_CLOUD_PROFILE"))
  const givenUrl = Option.getOrUndefined(yield* given(yield* Url, "DEVICE_CLOUD_URL"))
  const flagKey = Option.getOrUndefined(yield* Key)
  const environmentKey = Option.getOrUndefined(yield* ConfigFile.environment("DEVICE_CLOUD_KEY"))
  const isAllGiven = profileName === undefined && givenUrl !== undefined && (flagKey ?? environmentKey) !== undefined
  // A file that nothing is needed of may be damaged.
  const profile = isAllGiven ? undefined : yield* profileOf(profileName)
  const url = yield* parseUrl(givenUrl ?? profile?.url ?? localUrl)
  if (flagKey !== undefined) return yield* checked(url, flagKey, "--key")
  if (environmentKey !== undefined) return yield* checked(url, Redacted.make(environmentKey), "DEVICE_CLOUD_KEY")
  // A key is sent to its own server only.
  if (profile !== undefined && new URL(yield* parseUrl(profile.url)).origin === new URL(url).origin) {
    return yield* checked(url, Redacted.make(profile.key), yield* ConfigFile.path)
  }
  return yield* checked(url, isLoopback(url) ? yield* localKey : undefined, `${localFolder}/admin-key`)
})

/** The profile of that name, or the default one if there is one. */
const profileOf = Effect.fnUntraced(function*(name: string | undefined) {
  const profiles = yield* ConfigFile.load
  const profile = profiles.get(name ?? ConfigFile.defaultProfile)
  if (profile !== undefined || name === undefined) return profile
  return yield* usage(
    `There is no profile ${name}. ${
      profiles.size === 0 ? "`device-cloud init` makes one" : `Profiles: ${[...profiles.keys()].join(", ")}`
    }`
  )
})

const checked = Effect.fnUntraced(function*(url: string, key: Redacted.Redacted | undefined, keyFrom: string) {
  if (key !== undefined) yield* checkKey(key, keyFrom)
  return { url, key, keyFrom } satisfies Target
})

/** Fails if a header cannot carry the key. The error of `fetch` would show it. */
export const checkKey = (key: Redacted.Redacted, keyFrom: string) =>
  /^[\x21-\x7e]+$/.test(Redacted.value(key).trim())
    ? Effect.void
    : Effect.fail(usage(`The access key from ${keyFrom} has characters that no access key has`))

/** The address of a server without a slash at its end. */
export const parseUrl = Effect.fnUntraced(function*(text: string) {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    return yield* usage(`The address of the server must start with http:// or https://, not ${text}`)
  }
  const { hash, password, search, username } = new URL(text)
  if (username + password + search + hash !== "") {
    return yield* usage("The address of the server has no user, no password, no ? and no #")
  }
  return text.replace(/\/+$/, "")
})

/** Whether the server is on this machine. */
export const isLoopback = (url: string): boolean =>
  /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname)

/** The first key of a server that was started in this folder. */
export const localKey = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const { join } = yield* Path.Path
  const text = yield* Effect.option(fs.readFileString(join(localFolder, "admin-key")))
  return Option.isSome(text) ? Redacted.make(text.value.trim()) : undefined
})

/** Carries out a call again when the server has refused it because of too many, as soon as it admits it. */
export const patiently = <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  call.pipe(Effect.catch((error) => {
    const seconds = retryAfter(error)
    return seconds === undefined
      ? Effect.fail(error)
      : Effect.andThen(Effect.sleep(Duration.seconds(Math.max(1, seconds))), patiently(call))
  }))

const retryAfter = (error: unknown): number | undefined => {
  if (!isApiFailure(error) || error.code !== 42900) return undefined
  const { data } = error
  return typeof data === "object" && data !== null && "retry_after" in data ? Number(data.retry_after) : 1
}

const given = (flag: Option.Option<string>, variable: string) =>
  Option.isSome(flag) ? Effect.succeed(flag) : ConfigFile.environment(variable)

const required = Effect.gen(function*() {
  const { key, url } = yield* target
  return key === undefined
    ? yield* usage(`There is no access key for ${url}: set DEVICE_CLOUD_KEY, pass --key, or run \`device-cloud init\``)
    : { url, key }
})

const make = Effect.fnUntraced(function*(url: string, key: Redacted.Redacted) {
  const http = yield* HttpClient.HttpClient

  const call = Effect.fnUntraced(function*({ body, method, path, query = {} }: ApiRequest) {
    const request = HttpClientRequest.make(method as "GET")(`${url}/openapi/v1${path}`).pipe(
      HttpClientRequest.setUrlParams(query),
      HttpClientRequest.bearerToken(key),
      body === undefined ? (request) => request : HttpClientRequest.setBody(HttpBody.jsonUnsafe(body))
    )
    const response = yield* http.execute(request)
    const text = yield* response.text
    const type = response.headers["content-type"] ?? ""
    // The texts that the API responds. A page in HTML comes from something else.
    if (response.status < 300 && /^(text\/csv|application\/x-ndjson)/.test(type)) return text
    if (!type.startsWith("application/json")) return yield* notOfTheApi(url, response.status)
    const envelope = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => notOfTheApi(url, response.status)
    })
    // A success has a code and a message, too.
    if (!isApiFailure(envelope)) return yield* notOfTheApi(url, response.status)
    return envelope.code === 0 ? envelope as Envelope : yield* Effect.fail(envelope)
  })

  return Server.of({
    url,
    key,
    call: (request) => Effect.mapError(patiently(call(request)), explain(url))
  })
})

/** Something else than Device Cloud is there. */
export const notOfTheApi = (url: string, status: number) =>
  failure(`${url} answers with status ${status}, but not as Device Cloud does`)
