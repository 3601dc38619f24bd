/**
 * Publishes to devices through RabbitMQ.
 */
import { Outage } from "@device-cloud/core"
import type { Channel, ChannelModel, Message } from "amqplib"
import { Deferred, Effect, Schedule, type Scope } from "effect"
import { BrokerUnreachable } from "../BrokerLink.ts"
import { attempt } from "./Attempt.ts"
import { topicExchange } from "./Topology.ts"

export interface Publisher {
  /** Returns, once the broker has the message, whether a device has subscribed to the topic. */
  readonly publish: (topic: string, payload: Buffer) => Effect.Effect<boolean, BrokerUnreachable>
  readonly send: (topic: string, payload: Buffer) => void
}

/** How long a channel that the broker has ended stays away: who is refused asks again at this pace. */
const reopenAfter = "1 second"

/** RabbitMQ has no longer routing keys, so that no device can have subscribed to one. */
const maxKeyBytes = 255

const routingKeyOf = (topic: string): string => topic.replaceAll("/", ".")

const notTaken = (cause: unknown) =>
  new BrokerUnreachable({ message: `RabbitMQ has not taken a message: ${String(cause)}` })

/**
 * Publishes on two channels of the connection: RabbitMQ confirms what comes on one of
 * them. It ends a channel on which it refuses a message; another one takes its place.
 * While the broker has no memory or no disk it reads nothing from a connection
 * that publishes, so nothing is written then, and the connection is for nothing else.
 */
export const make = Effect.fnUntraced(function*(
  connection: ChannelModel
): Effect.fn.Return<Publisher, BrokerUnreachable, Scope.Scope> {
  const outage = Outage.make("RabbitMQ refuses messages for devices")
  /** Opens a channel, and another one whenever the broker has ended it, until the scope closes. */
  const lasting = Effect.fnUntraced(function*<A extends Channel>(open: () => PromiseLike<A>) {
    const opened = Effect.gen(function*() {
      const channel = yield* attempt(open)
      const refused = Deferred.makeUnsafe<Error>()
      channel.on("error", (error: Error) => Deferred.doneUnsafe(refused, Effect.succeed(error)))
      return { channel, refused }
    })
    let current = yield* opened
    yield* Effect.gen(function*() {
      yield* outage.failed(yield* Deferred.await(current.refused))
      yield* Effect.sleep(reopenAfter)
      current = yield* Effect.retry(opened, Schedule.spaced(reopenAfter))
    }).pipe(Effect.forever, Effect.forkScoped)
    return () => current.channel
  })
  /** The ids of messages that no device has subscribed to. */
  const returned = new Set<string>()
  const confirming = yield* lasting(async () => {
    const channel = await connection.createConfirmChannel()
    channel.on("return", ({ properties }: Message) => void returned.add(String(properties.messageId)))
    return channel
  })
  const sending = yield* lasting(() => connection.createChannel())
  let lastId = 0
  /** Why the broker takes nothing now. */
  let blocked: string | undefined
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  connection.on("blocked", (reason: string) => {
    blocked = reason
    runFork(Effect.logWarning(`RabbitMQ takes nothing for devices now: ${reason}`))
  })
  connection.on("unblocked", () => {
    blocked = undefined
    runFork(Effect.logInfo("RabbitMQ takes messages for devices again"))
  })

  const taken = Effect.flatMap(
    outage.over,
    (wasRefused) => wasRefused ? Effect.logInfo("RabbitMQ takes messages for devices again") : Effect.void
  )

  return {
    publish: (topic, payload) => {
      const routingKey = routingKeyOf(topic)
      if (Buffer.byteLength(routingKey) > maxKeyBytes) return Effect.succeed(false)
      return Effect.callback<boolean, BrokerUnreachable>((resume) => {
        if (blocked !== undefined) return resume(Effect.fail(notTaken(blocked)))
        const messageId = String(++lastId)
        try {
          confirming().publish(
            topicExchange,
            routingKey,
            payload,
            { mandatory: true, persistent: true, messageId },
            (error: unknown) =>
              resume(error ? Effect.fail(notTaken(error)) : Effect.succeed(!returned.delete(messageId)))
          )
        } catch (error) {
          resume(Effect.fail(notTaken(error)))
        }
      }).pipe(Effect.tap(taken))
    },
    send: (topic, payload) => {
      if (blocked !== undefined) return
      try {
        sending().publish(topicExchange, routingKeyOf(topic), payload)
      } catch {
        // The connection has ended, or the topic is too long: what waits for a reply asks again.
      }
    }
  }
})
