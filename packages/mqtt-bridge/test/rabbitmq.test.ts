/**
 * The link with a real RabbitMQ, without a cloud behind it.
 */
import { BrokerLink, type BrokerMessage, RabbitMq } from "@device-cloud/mqtt-bridge"
import { eventually } from "@device-cloud/testing"
import { assert, describe, layer } from "@effect/vitest"
import { connect } from "amqplib"
import { Context, Effect, Exit, Layer, Logger, Redacted, Scope } from "effect"
import { type AddressInfo, connect as connectTo, createServer, type Socket } from "node:net"
import * as RabbitTestServer from "./RabbitTestServer.ts"

const patient = { timeout: "40 seconds" } as const

/** A connection of the test's own to the broker, which a test may end. */
const connectionTo = (broker: { readonly amqpUrl: string }) =>
  Effect.acquireRelease(
    Effect.promise(() => connect(broker.amqpUrl)),
    (connection) => Effect.ignore(Effect.tryPromise(async () => await connection.close()))
  )

/** Serves all shares of a broker. `onMessage` gets the messages of devices. */
const serve = Effect.fnUntraced(function*(
  broker: { readonly amqpUrl: string; readonly mqttUrl: string },
  onMessage: (message: BrokerMessage) => void
) {
  const link = yield* BrokerLink.pipe(
    Effect.provide(RabbitMq.layer({ url: Redacted.make(broker.amqpUrl), mqttUrl: broker.mqttUrl }))
  )
  const opened: Array<number> = []
  yield* link.serve((share) =>
    Effect.sync(() => {
      opened.push(share)
      return { message: onMessage, connected: () => {}, disconnected: () => {}, drained: Effect.void }
    })
  )
  yield* eventually(Effect.sync(() => opened.length), { until: (count) => count === 8, ...patient })
  const connection = yield* connectionTo(broker)
  const channel = yield* Effect.promise(() => connection.createConfirmChannel())
  return {
    link,
    opened,
    /** Publishes as the MQTT plug-in does what a device says. */
    say: (topic: string, body = "{}") =>
      Effect.sync(() =>
        channel.publish("amq.topic", topic.replaceAll("/", "."), Buffer.from(body), {
          headers: { "x-mqtt-publish-qos": 1 }
        })
      ),
    /** Waits until the broker has what was said. */
    isStored: Effect.promise(() => channel.waitForConfirms())
  }
})

/** A port that leads to another one until it is silenced: then it takes everything and says nothing. */
const silenced = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<{
      readonly port: number
      readonly silence: () => void
      readonly hasEnded: () => boolean
      readonly close: () => void
    }>((resume) => {
      const sockets: Array<Socket> = []
      let hasEnded = false
      const server = createServer((near) => {
        const far = connectTo(port, "127.0.0.1")
        near.pipe(far)
        far.pipe(near)
        near.once("close", () => {
          hasEnded = true
        })
        for (const socket of [near, far]) sockets.push(socket.on("error", () => {}))
      }).listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({
          port: (server.address() as AddressInfo).port,
          silence: () => {
            for (const socket of sockets) socket.unpipe().resume()
          },
          hasEnded: () => hasEnded,
          close: () => {
            for (const socket of sockets) socket.destroy()
            server.close()
          }
        })))
    }),
    ({ close }) => Effect.sync(close)
  )

/** One broker for all tests. It takes back soon what is not settled. */
class Broker extends Context.Service<Broker, Effect.Success<ReturnType<typeof RabbitTestServer.start>>>()(
  "test/Broker"
) {
  static readonly layer = Layer.effect(
    Broker,
    Effect.tap(
      RabbitTestServer.start(
        "http://127.0.0.1:1",
        "[{rabbit, [{consumer_timeout, 1000}, {channel_tick_interval, 500}]}]."
      ),
      ({ ready }) => ready
    )
  )
}

describe.skipIf(!RabbitTestServer.isInstalled)(RabbitTestServer.named("the link with RabbitMQ"), () => {
  layer(Broker.layer, { excludeTestServices: true, timeout: "90 seconds" })("as a port", (it) => {
    it.effect("nobody hears a message on a topic that the broker has no room for", () =>
      Effect.gen(function*() {
        const { link } = yield* serve(yield* Broker, ({ settle }) => settle())
        assert.isFalse(yield* link.publish(`/pk/d/user/${"é".repeat(150)}`, Buffer.from("x")))
        assert.isFalse(yield* link.publish("/pk/d/user/t", Buffer.from("x")))
      }), 90_000)

    it.effect("a broker that says nothing more does not keep a server from stopping", () =>
      Effect.gen(function*() {
        const { amqpUrl, mqttUrl } = yield* Broker
        const between = yield* silenced(Number(new URL(amqpUrl).port))
        const url = new URL(amqpUrl)
        url.port = String(between.port)
        const scope = yield* Scope.fork(yield* Effect.scope)
        const link = yield* BrokerLink.pipe(
          Effect.provide(RabbitMq.layer({ url: Redacted.make(url.href), mqttUrl }))
        )
        const opened: Array<number> = []
        yield* Scope.provide(
          link.serve((share) =>
            Effect.sync(() => {
              opened.push(share)
              return { message: () => {}, connected: () => {}, disconnected: () => {}, drained: Effect.void }
            })
          ),
          scope
        )
        yield* eventually(Effect.sync(() => opened.length), { until: (count) => count === 8, ...patient })
        between.silence()
        yield* Scope.close(scope, Exit.void)
        // The next heartbeats end it.
        assert.isFalse(between.hasEnded())
      }), 90_000)

    it.effect("a message that is settled twice costs no share", () =>
      Effect.gen(function*() {
        const settled: Array<string> = []
        const { opened, say } = yield* serve(yield* Broker, ({ settle, topic }) => {
          settle()
          settle()
          settled.push(topic)
        })
        const topic = "/sys/pk/d/thing/event/property/post"
        for (let count = 1; count <= 3; count++) {
          yield* say(topic)
          yield* eventually(Effect.sync(() => settled.length), { until: (length) => length === count })
        }
        assert.deepStrictEqual(settled, [topic, topic, topic])
        assert.lengthOf(opened, 8)
      }), 90_000)

    it.effect(
      "a broker without memory gets rid of what it has, and nothing for devices waits for it here",
      () =>
        Effect.gen(function*() {
          const broker = yield* Broker
          const topic = `/sys/pk/d${Date.now()}/thing/event/property/post`
          const bodies = Array.from({ length: 3000 }, (_, i) => String(i))
          const held: Array<() => void> = []
          const settled = new Set<string>()
          let isHolding = true
          const { isStored, link, say } = yield* serve(broker, ({ payload, settle, topic: said }) => {
            const end = () => {
              settle()
              settled.add(payload.toString())
            }
            if (said !== topic) settle()
            else if (isHolding) held.push(end)
            else end()
          })
          // More than a share gets before it settles.
          yield* Effect.forEach(bodies, (body) => say(topic, body), { discard: true })
          yield* isStored
          yield* eventually(Effect.sync(() => held.length), { until: (count) => count >= 512, ...patient })

          yield* Effect.acquireRelease(broker.setAlarm(true), () => broker.setAlarm(false))
          // Tells the broker that this server publishes.
          const publish = link.publish("/pk/d/user/t", Buffer.from("x"))
          const refused = Effect.flip(Effect.timeout(publish, "1 second"))
          yield* refused
          isHolding = false
          for (const end of held) end()
          yield* eventually(Effect.sync(() => settled.size), { until: (count) => count === bodies.length, ...patient })
          // A broker that takes its time has ended the connection meanwhile: who publishes on the next one is told, too.
          const isTold = ({ message }: { readonly message: string }) => /low on memory/.test(message)
          yield* eventually(refused, { until: isTold, ...patient })

          yield* broker.setAlarm(false)
          const taken = yield* eventually(Effect.exit(publish), { until: Exit.isSuccess, ...patient })
          assert.deepStrictEqual(taken, Exit.succeed(false))
        }),
      90_000
    )

    it.effect(
      "what waits to be published is published on the connection after the one that has ended",
      () =>
        Effect.gen(function*() {
          const broker = yield* Broker
          const { link } = yield* serve(broker, ({ settle }) => settle())
          const publish = link.publish("/pk/d/user/t", Buffer.from("x"))
          assert.isFalse(yield* publish)
          yield* broker.endConnections("maintenance of the night")
          const taken = yield* eventually(Effect.exit(publish), { until: Exit.isSuccess, ...patient })
          assert.deepStrictEqual(taken, Exit.succeed(false))
        }),
      90_000
    )

    it.effect("the log says why the broker has ended the connection", () =>
      Effect.gen(function*() {
        const broker = yield* Broker
        const logged: Array<ReadonlyArray<unknown>> = []
        const log = Logger.layer([Logger.make(({ message }) => void logged.push([message].flat()))])
        yield* serve(broker, ({ settle }) => settle()).pipe(Effect.provide(log))
        yield* broker.endConnections("maintenance of the night")
        yield* eventually(Effect.sync(() => logged.length), { until: (count) => count === 3, ...patient })
        assert.deepStrictEqual(logged.map(([said]) => said), [
          "Devices at RabbitMQ are carried",
          "Devices at RabbitMQ are not carried now",
          "Devices at RabbitMQ are carried"
        ])
        assert.match(String(logged[1]![1]), /maintenance of the night/)
      }), 90_000)

    it.effect(
      "a broker that refuses what the server publishes for a time takes it afterwards",
      () =>
        Effect.gen(function*() {
          const broker = yield* Broker
          const messages: Array<unknown> = []
          const logged = Effect.provide(
            Logger.layer([Logger.make(({ message }) => void messages.push([message].flat()[0]))])
          )
          const { link, opened } = yield* logged(serve(broker, ({ settle }) => settle()))
          const publish = logged(link.publish("/pk/d/user/t", Buffer.from("x")))
          // Before the first message: the broker remembers for a time what a channel may do.
          yield* Effect.acquireRelease(broker.mayPublish(false), () => broker.mayPublish(true))
          assert.match((yield* Effect.flip(publish)).message, /RabbitMQ has not taken a message/)
          yield* eventually(Effect.sync(() => messages.length), { until: (count) => count === 2, ...patient })
          // Nor may all that is needed be declared again: what carries goes on.
          const admin = yield* connectionTo(broker)
          const exchange = "device-cloud.from-devices"
          yield* Effect.promise(() => admin.createChannel().then((channel) => channel.deleteExchange(exchange)))
          const isDeclared = Effect.promise(async () => {
            const channel = await admin.createChannel()
            channel.on("error", () => {})
            return channel.checkExchange(exchange).then(() => true, () => false)
          })
          yield* eventually(isDeclared, { until: (is) => is, ...patient })
          yield* broker.mayPublish(true)
          yield* eventually(Effect.exit(publish), { until: Exit.isSuccess, ...patient })
          assert.deepStrictEqual(messages, [
            "Devices at RabbitMQ are carried",
            "RabbitMQ refuses messages for devices",
            "RabbitMQ takes messages for devices again"
          ])
          // What devices say was taken all the time.
          assert.strictEqual(opened.length, 8)
        }),
      90_000
    )

    it.effect(
      "what somebody deletes at the broker is there again, and messages come",
      () =>
        Effect.gen(function*() {
          const broker = yield* Broker
          const own = `/sys/pk/d${Date.now()}/thing/event/property/post`
          const heard: Array<string> = []
          const { say } = yield* serve(broker, ({ settle, topic }) => {
            settle()
            if (topic === own) heard.push(topic)
          })
          const connection = yield* connectionTo(broker)
          const admin = yield* Effect.promise(() => connection.createChannel())
          yield* Effect.promise(() => admin.deleteExchange("device-cloud.from-devices"))
          yield* eventually(
            Effect.andThen(say(own), Effect.sync(() => heard.length)),
            { until: (count) => count > 0, ...patient }
          )
          yield* Effect.promise(() =>
            admin.unbindExchange("device-cloud.by-topic-8", "device-cloud.from-devices", "", {
              "x-match": "all-with-x",
              "x-mqtt-publish-qos": null
            })
          )
          heard.length = 0
          yield* eventually(
            Effect.andThen(say(own), Effect.sync(() => heard.length)),
            { until: (count) => count > 1, ...patient }
          )
        }),
      90_000
    )

    it.effect(
      "a server is counted again after somebody has deleted the queue of which the servers consume, and made it again",
      () =>
        Effect.gen(function*() {
          const broker = yield* Broker
          yield* serve(broker, ({ settle }) => settle())
          const connection = yield* connectionTo(broker)
          const admin = yield* Effect.promise(() => connection.createChannel())
          const queue = "device-cloud.nodes"
          yield* Effect.promise(async () => {
            const deleted = admin.deleteQueue(queue)
            await admin.assertQueue(queue, { durable: false, autoDelete: true })
            await deleted
          })
          yield* eventually(Effect.promise(() => admin.checkQueue(queue)), {
            until: ({ consumerCount }) => consumerCount === 1,
            ...patient
          })
        }),
      90_000
    )

    it.effect(
      "a share that the broker has taken away is taken again, with what was not settled",
      () =>
        Effect.gen(function*() {
          const own = `/sys/pk/d${Date.now()}/thing/event/property/post`
          const heard: Array<string> = []
          const { say } = yield* serve(yield* Broker, ({ settle, topic }) => {
            // What an earlier attempt has left comes, too.
            if (topic !== own || heard.push(topic) > 1) settle()
          })
          yield* say(own)
          yield* eventually(Effect.sync(() => heard.length), { until: (count) => count === 2, ...patient })
          yield* say(own)
          yield* eventually(Effect.sync(() => heard.length), { until: (count) => count === 3, ...patient })
        }),
      90_000
    )
  })
})
