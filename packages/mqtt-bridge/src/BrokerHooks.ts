/**
 * The HTTP hooks by which a broker asks who may connect, publish and subscribe, in
 * the form of RabbitMQ's `rabbitmq_auth_backend_http`.
 */
import { ConnectPacket, isBroadcastFilter, type Owner, ownerOf } from "@device-cloud/alink"
import { ConnectRefusals, DeviceAuthenticator, equalInConstantTime } from "@device-cloud/core"
import { ByteSize, Effect, Layer, Redacted } from "effect"
import {
  HttpIncomingMessage,
  HttpMiddleware,
  HttpRouter,
  type HttpServer,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { BrokerLink } from "./BrokerLink.ts"
import { namesDevice, refusalOf } from "./ClientNames.ts"
import { transport } from "./DeviceMessages.ts"

export interface HookOptions {
  /** What the broker shows in the path of each request, `/mqtt-bridge/{credential}/user`; at least 32 characters. */
  readonly credential: Redacted.Redacted
  /** The virtual host of the devices. Default `/`. */
  readonly vhost?: string | undefined
}

/** Serves `POST /mqtt-bridge/{credential}/{user,vhost,resource,topic}` on an HTTP server. */
export const layer = (
  options: HookOptions
): Layer.Layer<never, never, BrokerLink | ConnectRefusals | DeviceAuthenticator | HttpServer.HttpServer> =>
  HttpRouter.serve(routes(options), { disableLogger: true, disableListenLog: true }).pipe(
    // The path has the credential: it stays out of traces.
    Layer.provide(Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true))
  )

/** The exchange on which devices publish, and from which they get what they have subscribed to. */
const exchange = "amq.topic"

/** CONNACK return codes (MQTT 3.1.1, table 3.1), under which refusals are told to operators. */
const connack = { identifierRejected: 2, badCredentials: 4, notAuthorized: 5 } as const

/** A question of the broker. The longest have a user name, a password and a client id. */
const maxBodySize = ByteSize.kibibytes(64)

type Fields = URLSearchParams

const routes = ({ credential, vhost = "/" }: HookOptions) =>
  HttpRouter.use(Effect.fnUntraced(function*(router) {
    const authenticator = yield* DeviceAuthenticator
    const refusals = yield* ConnectRefusals
    const link = yield* BrokerLink

    /** Undefined: it is too early to say. */
    const user = Effect.fnUntraced(function*(fields: Fields) {
      // Until the cloud has its queues, the broker acknowledges what devices say and forgets it.
      if (!link.isCarrying()) return undefined
      const username = fields.get("username") ?? ""
      const clientId = fields.get("client_id") ?? ""
      const device = ConnectPacket.namedDevice(username)
      // The broker does not say where the client is: each device is counted as its own address.
      const address = `mqtt-bridge/${username.slice(0, 256)}`
      const refuse = (reason: string, returnCode: number = connack.badCredentials) => {
        refusals.note({ device, address, transport, reason, returnCode })
        return false
      }
      if (device === undefined) return false
      const misfit = refusalOf(device, clientId)
      if (misfit !== undefined) return refuse(misfit, connack.identifierRejected)
      return yield* Effect.fromResult(
        ConnectPacket.parse({ clientId, username, password: fields.get("password") ?? "" }, address)
      ).pipe(
        Effect.flatMap((intent) => {
          switch (intent._tag) {
            case "Signed":
              return Effect.as(authenticator.authenticate(intent.credentials), true)
            case "Token":
              return Effect.as(authenticator.authenticateToken(intent.credentials), true)
            case "Register":
              return Effect.sync(() => refuse("registration is over HTTPS", connack.notAuthorized))
          }
        }),
        Effect.catchTags({
          MalformedCredentials: ({ reason }) => Effect.sync(() => refuse(reason)),
          DeviceNotFound: () => Effect.sync(() => refuse("unknown device")),
          WrongSignature: () => Effect.sync(() => refuse("wrong signature")),
          CertificateRequired: () => Effect.sync(() => refuse("the device needs its client certificate")),
          DeviceDisabled: () => Effect.sync(() => refuse("device disabled", connack.notAuthorized)),
          SubDeviceOnly: () =>
            Effect.sync(() => refuse("a sub-device speaks through its gateway", connack.notAuthorized)),
          TooManyWrongSignatures: () => Effect.sync(() => refuse("too many wrong signatures", connack.notAuthorized))
        })
      )
    })

    /** A check that needs no more than the names of the device. */
    const ofDevice = (check: (device: Owner, fields: Fields) => boolean) => (fields: Fields) => {
      const device = ConnectPacket.namedDevice(fields.get("username") ?? "")
      return Effect.succeed(device !== undefined && fields.get("vhost") === vhost && check(device, fields))
    }

    const hooks = { user, vhost: ofDevice(() => true), resource: ofDevice(mayUse), topic: ofDevice(maySpeak) }
    for (const [name, decide] of Object.entries(hooks)) {
      yield* router.add(
        "POST",
        `/mqtt-bridge/:credential/${name}`,
        Effect.gen(function*() {
          const { credential: shown = "" } = yield* HttpRouter.params
          if (!equalInConstantTime(shown, Redacted.value(credential))) return HttpServerResponse.empty({ status: 403 })
          const text = yield* (yield* HttpServerRequest.HttpServerRequest).text
          const may = yield* decide(new URLSearchParams(text))
          return may === undefined
            ? HttpServerResponse.empty({ status: 503 })
            : HttpServerResponse.text(may ? "allow" : "deny")
        }).pipe(
          Effect.provideService(HttpIncomingMessage.MaxBodySize, maxBodySize),
          Effect.catchCause((cause) =>
            Effect.as(
              Effect.logWarning("A question of the broker could not be decided", cause),
              // The broker refuses the client, which comes again.
              HttpServerResponse.empty({ status: 503 })
            )
          )
        )
      )
    }
  }))

const queuePrefix = "mqtt-subscription-"

/** A device uses the exchange of topics, and the queues of its own sessions. */
const mayUse = (device: Owner, fields: Fields): boolean => {
  const name = fields.get("name") ?? ""
  switch (fields.get("resource")) {
    case "exchange":
      return name === exchange && fields.get("permission") !== "configure"
    case "queue":
      return name.startsWith(queuePrefix) && /qos[01]$/.test(name) &&
        namesDevice(device, name.slice(queuePrefix.length, -"qos0".length))
    default:
      return false
  }
}

/** A device publishes on its own topics. It subscribes to these and to broadcasts of its product. */
const maySpeak = (device: Owner, fields: Fields): boolean => {
  if (fields.get("name") !== exchange) return false
  const topic = topicOf(fields.get("routing_key") ?? "")
  const owner = ownerOf(topic)
  return (owner?.productKey === device.productKey && owner.deviceName === device.deviceName) ||
    (fields.get("permission") === "read" && isBroadcastFilter(topic, device))
}

/** Returns the topic or filter of a routing key. */
export const topicOf = (routingKey: string): string => routingKey.replaceAll(".", "/").replaceAll("*", "+")
