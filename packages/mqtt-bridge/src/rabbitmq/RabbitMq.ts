/**
 * RabbitMQ with its MQTT plug-in as the broker in front of the cloud, over AMQP
 * 0-9-1 (docs/mqtt-bridge.md).
 */
import { Outage } from "@device-cloud/core"
import { connect } from "amqplib"
import { Deferred, Effect, Layer, Redacted, Schedule, type Scope } from "effect"
import mqtt from "mqtt"
import { BrokerLink, BrokerUnreachable, type ShareHandler } from "../BrokerLink.ts"
import { attempt, close } from "./Attempt.ts"
import * as Publisher from "./Publisher.ts"
import * as Shares from "./Shares.ts"
import { declare, topology } from "./Topology.ts"

export interface RabbitMqOptions {
  /** `amqp://user:password@host:5672/vhost`, or `amqps:`. The user may do everything in the virtual host. */
  readonly url: Redacted.Redacted
  /** Where devices connect, for example `mqtt://host:1883`: the cloud ends connections of devices there, as the same user. */
  readonly mqttUrl: string
  /** The beginning of the names of exchanges and queues. Default `device-cloud`. */
  readonly prefix?: string | undefined
  /** Shares of messages and connections, the same on all nodes: at most as many nodes have work. Default: 8. */
  readonly shares?: number | undefined
}

/** Links this node with RabbitMQ. Connects when it serves. */
export const layer = (options: RabbitMqOptions): Layer.Layer<BrokerLink> => Layer.sync(BrokerLink, () => make(options))

/** How long a broker may take to answer before the connection counts as lost, seconds, and milliseconds. */
const heartbeat = 5
const connectTimeout = 5000
/** How often nodes look whether a share is free. */
const balanceInterval = "1 second"
/** How long something is missing at most that somebody has deleted at the broker, which acknowledges and forgets messages without it. */
const declareInterval = "5 seconds"

const make = (
  { mqttUrl, prefix = "device-cloud", shares = 8, url }: RabbitMqOptions
): BrokerLink["Service"] => {
  let publisher: Publisher.Publisher | undefined
  let nodes = 1
  let isCarrying = false
  const outage = Outage.make("Devices at RabbitMQ are not carried now")

  /** Works until the connection ends. */
  const work = Effect.fnUntraced(function*(
    open: (share: number) => Effect.Effect<ShareHandler, never, Scope.Scope>
  ) {
    const ended = yield* Deferred.make<never, BrokerUnreachable>()
    const opened = Effect.gen(function*() {
      const connection = yield* Effect.acquireRelease(
        attempt(() => connect(withHeartbeat(url), { timeout: connectTimeout, noDelay: true })),
        close
      )
      connection.on("error", () => {})
      connection.on("close", (reason?: Error) => {
        const message = `RabbitMQ: ${reason?.message ?? "the connection ended"}`
        Deferred.doneUnsafe(ended, Effect.fail(new BrokerUnreachable({ message })))
      })
      return connection
    })
    const connection = yield* opened
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isCarrying = false
      })
    )
    // On a channel of its own: RabbitMQ ends one on which it refuses something.
    const declareAll = Effect.acquireUseRelease(
      attempt(() => connection.createChannel()),
      (channel) => {
        channel.on("error", () => {})
        return attempt(() => declare(channel, prefix, shares))
      },
      close
    )
    yield* declareAll
    publisher = yield* Publisher.make(yield* opened)
    isCarrying = true
    yield* outage.over
    yield* Effect.logInfo("Devices at RabbitMQ are carried")
    const { balance } = yield* Shares.make({ connection, names: topology(prefix, shares), count: shares, open })
    const balancing = balance.pipe(
      Effect.map((count) => {
        nodes = count
      }),
      Effect.repeat(Schedule.spaced(balanceInterval))
    )
    // What was declared before still carries: a refusal ends nothing, and the next time may do.
    const declaringAgain = Effect.forever(Effect.andThen(Effect.sleep(declareInterval), Effect.ignore(declareAll)))
    yield* Effect.raceAllFirst([balancing, declaringAgain, Deferred.await(ended)])
  })

  const unreachable = new BrokerUnreachable({ message: "RabbitMQ: not connected" })

  return BrokerLink.of({
    serve: (open) =>
      Effect.scoped(work(open)).pipe(
        Effect.tapError(outage.failed),
        Effect.retry(Schedule.spaced("1 second")),
        Effect.forkScoped,
        Effect.asVoid
      ),
    isCarrying: () => isCarrying,
    nodes: () => nodes,
    // On the connection that is there when it runs.
    publish: (topic, payload) => Effect.suspend(() => publisher?.publish(topic, payload) ?? Effect.fail(unreachable)),
    send: (topic, payload) => publisher?.send(topic, payload),
    // A broker ends the connection whose client id comes again, and a clean session forgets what was kept.
    disconnect: (clientId) => {
      const { password, username } = new URL(Redacted.value(url))
      return Effect.flatMap(
        attempt(() =>
          mqtt.connectAsync(mqttUrl, {
            clientId,
            username: decodeURIComponent(username),
            password: decodeURIComponent(password),
            protocolVersion: 4,
            clean: true,
            reconnectPeriod: 0,
            connectTimeout
          })
        ),
        (client) => attempt(() => client.endAsync())
      )
    }
  })
}

const withHeartbeat = (url: Redacted.Redacted): string => {
  const given = new URL(Redacted.value(url))
  given.searchParams.set("heartbeat", String(heartbeat))
  return given.href
}
