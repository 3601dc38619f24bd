/**
 * What `device-cloud doctor` looks at, each thing for itself.
 */
import { Api } from "@device-cloud/http"
import { Clock, Effect, type Redacted } from "effect"
import { HttpClient, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { OpenApi } from "effect/http-api"
import { request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { connect as connectTcp } from "node:net"
import { connect as connectTls } from "node:tls"
import { explain, failure } from "./CommandFailure.ts"
import type { MqttEndpoint } from "./Endpoints.ts"
import { notOfTheApi } from "./Server.ts"

/** What was found. */
export interface Finding {
  readonly check: string
  readonly status: "ok" | "warning" | "failed"
  /** What is so, or what to do about it. */
  readonly detail: string
}

/** A thing to look at: fails with a sentence that says what is wrong. */
export type Check<R = never> = Effect.Effect<Finding, never, R>

const timeout = "5 seconds"
const dayMillis = 86_400_000

/** Makes a check: what it finds, or that it has failed. */
const check = <R>(
  name: string,
  look: Effect.Effect<Omit<Finding, "check">, { readonly message: string }, R>
): Check<R> =>
  look.pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(failure(`no response within ${timeout}`)) }),
    Effect.catch(({ message }) => Effect.succeed({ status: "failed" as const, detail: message })),
    Effect.map((found) => ({ check: name, ...found }))
  )

const ok = (detail: string) => ({ status: "ok" as const, detail })
const warning = (detail: string) => ({ status: "warning" as const, detail })

const get = (url: string, path: string, key?: Redacted.Redacted) =>
  HttpClient.HttpClient.use((http) => {
    const request = HttpClientRequest.get(`${url}${path}`)
    return http.execute(key === undefined ? request : HttpClientRequest.bearerToken(request, key))
  }).pipe(Effect.mapError(explain(url)))

/** Whether the server is there. */
export const reachable = (url: string) =>
  check(
    "server",
    Effect.gen(function*() {
      const { status } = yield* get(url, "/healthz")
      return status === 200
        ? ok(`${url} is up`)
        : yield* failure(`${url}/healthz answers with ${status}: this is not Device Cloud, or a proxy is before it`)
    })
  )

/** Whether all parts of the server work. */
export const ready = (url: string) =>
  check(
    "ready",
    Effect.gen(function*() {
      const response = yield* get(url, "/readyz")
      const { data, message } = yield* json(url, response)
      if (isObject(data)) return ok(Object.keys(data).join(", "))
      return yield* typeof message === "string" ? failure(message) : notOfTheApi(url, response.status)
    })
  )

/** The clock of this machine beside that of the server, in seconds. */
const tolerance = 5

/** Whether the clocks agree: signatures and tokens have times in them. */
export const clock = (url: string) =>
  check(
    "clock",
    Effect.gen(function*() {
      const before = yield* Clock.currentTimeMillis
      const { headers } = yield* get(url, "/healthz")
      const after = yield* Clock.currentTimeMillis
      const server = Date.parse(headers["date"] ?? "")
      if (Number.isNaN(server)) return warning("the server does not say what time it is")
      // The header has whole seconds.
      const skew = Math.max(0, server - after, before - (server + 1000)) / 1000
      return skew <= tolerance
        ? ok("agrees with that of the server")
        : warning(`differs from that of the server by ${Math.round(skew)} s: set it by NTP`)
    })
  )

/** Whether the server takes the key, and what the key may do. */
export const accessKey = (url: string, key: Redacted.Redacted | undefined, keyFrom: string) =>
  check(
    "access key",
    Effect.gen(function*() {
      if (key === undefined) return yield* failure("there is none: set DEVICE_CLOUD_KEY, or run `device-cloud init`")
      const response = yield* get(url, "/openapi/v1/projects?page_size=1", key)
      const { message } = yield* json(url, response)
      if (typeof message !== "string") return yield* notOfTheApi(url, response.status)
      if (response.status === 401) return yield* failure(`from ${keyFrom}: ${message}`)
      // The sentence of the refusal names the role.
      const role = response.status === 200 ? "owner" : /has the role (\w+)/.exec(message)?.[1]
      if (role === undefined) return warning(`from ${keyFrom}: ${message}`)
      const expires = response.headers["access-key-expires"]
      return expires === undefined
        ? ok(`from ${keyFrom}, role ${role}`)
        : warning(`from ${keyFrom}, role ${role}, expires ${expires}: make a new one with \`device-cloud keys create\``)
    })
  )

/** Whether the server has all that this command line knows. */
export const versions = (url: string, version: string) =>
  check(
    "versions",
    Effect.gen(function*() {
      const response = yield* get(url, "/openapi.json")
      if (response.status !== 200) return warning(`this is ${version}; the server does not publish its description`)
      const { paths } = yield* json(url, response)
      if (!isObject(paths)) return yield* notOfTheApi(url, response.status)
      const theirs = new Set(operationIds(paths))
      const missing = operationIds(OpenApi.fromApi(Api).paths).filter((id) => !theirs.has(id))
      return missing.length === 0
        ? ok(`this is ${version}; the server has all ${theirs.size} operations`)
        : warning(`this is ${version}; the server is older and lacks ${missing.join(", ")}`)
    })
  )

const operationIds = (paths: unknown): ReadonlyArray<string> =>
  Object.values(paths as Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>)
    .flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))

/** Whether devices can connect: the port, and the certificate if it is TLS. */
export const mqtt = ({ ca, url }: MqttEndpoint) => {
  const { hostname, port, protocol } = new URL(url)
  const isTls = protocol === "mqtts:" || protocol === "wss:"
  return check(
    "mqtt",
    Effect.flatMap(
      handshake(hostname, Number(port || (isTls ? 8883 : 1883)), isTls, ca),
      (tls) => tls === undefined ? Effect.succeed(ok(`${url} is open, without TLS`)) : certificateFinding(url, tls)
    )
  )
}

/** Whether the certificate of the server is good. */
export const certificate = (url: string) => {
  const { hostname, port } = new URL(url)
  return check(
    "certificate",
    Effect.flatMap(
      handshake(hostname, Number(port || 443), true, undefined),
      (tls) => certificateFinding(url, tls!)
    )
  )
}

const certificateFinding = (url: string, { expires, subject }: Certificate) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const days = Math.floor((expires - now) / dayMillis)
    const detail = `${url} has a certificate for ${subject}, valid for ${days} days more`
    return days < 14 ? warning(`${detail}: renew it`) : ok(detail)
  })

interface Certificate {
  readonly subject: string
  /** Unix milliseconds. */
  readonly expires: number
}

const handshake = (host: string, port: number, isTls: boolean, ca: string | undefined) =>
  Effect.callback<Certificate | undefined, { readonly message: string }>((resume) => {
    const name = host.replace(/^\[|\]$/g, "")
    const socket = isTls
      ? connectTls({
        host: name,
        port,
        ...ca === undefined ? {} : { ca },
        ...isAddress(name) ? {} : { servername: name }
      })
      : connectTcp({ host: name, port })
    socket.once(isTls ? "secureConnect" : "connect", () => {
      if (!isTls) return resume(Effect.succeed(undefined))
      const { subject, subjectaltname, valid_to } = (socket as ReturnType<typeof connectTls>).getPeerCertificate()
      resume(Effect.succeed({
        subject: subjectaltname?.replaceAll(/(DNS|IP Address):/g, "") ?? String(subject.CN),
        expires: Date.parse(valid_to)
      }))
    })
    socket.once(
      "error",
      (error: NodeJS.ErrnoException) =>
        resume(Effect.fail(failure(`${host}:${port}: ${error.message}${hints[error.code ?? ""] ?? ""}`)))
    )
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.scoped)

const isAddress = (name: string): boolean => /^[\d.]+$|:/.test(name)

const hints: Readonly<Record<string, string>> = {
  ECONNREFUSED: "; nothing listens there: --mqtt names another place",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "; devices must trust its authority: --ca names the file",
  SELF_SIGNED_CERT_IN_CHAIN: "; devices must trust its authority: --ca names the file",
  DEPTH_ZERO_SELF_SIGNED_CERT: "; devices must trust it: --ca names the file"
}

/** Whether MQTT over WebSocket gets through, also through proxies. */
export const webSocket = (url: string) =>
  check(
    "websocket",
    Effect.callback<Omit<Finding, "check">>((resume) => {
      const request = (url.startsWith("https:") ? httpsRequest : httpRequest)(`${url}/mqtt`, {
        agent: false,
        headers: {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "ZGV2aWNlLWNsb3VkLWNsaQ==",
          "sec-websocket-protocol": "mqtt"
        }
      })
      request.once("upgrade", (_, socket) => {
        socket.destroy()
        resume(Effect.succeed(ok(`${url.replace(/^http/, "ws")}/mqtt takes MQTT`)))
      })
      request.once("response", ({ statusCode }) => {
        resume(Effect.succeed(
          warning(`${url}/mqtt answers with ${statusCode} in place of an upgrade: a proxy may not pass it on`)
        ))
      })
      request.once("error", (error) => resume(Effect.succeed({ status: "failed", detail: error.message })))
      request.end()
      return Effect.sync(() => request.destroy())
    })
  )

const json = Effect.fnUntraced(function*(url: string, response: HttpClientResponse.HttpClientResponse) {
  const body = yield* Effect.mapError(response.json, () => notOfTheApi(url, response.status))
  return isObject(body) ? body : yield* notOfTheApi(url, response.status)
})

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
