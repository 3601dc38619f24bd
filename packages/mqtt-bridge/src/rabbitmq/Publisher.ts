/**
 * Publishes to devices through RabbitMQ.
 */
import type { ChannelModel, Message } from "amqplib"
import { Effect, type Scope } from "effect"
import { BrokerUnreachable } from "../BrokerLink.ts"
import { attempt } from "./Attempt.ts"
import { topicExchange } from "./Topology.ts"

export interface Publisher {
  /** Returns, once the broker has the message, whether a device has subscribed to the topic. */
  readonly publish: (topic: string, payload: Buffer) => Effect.Effect<boolean, BrokerUnreachable>
  readonly send: (topic: string, payload: Buffer) => void
}

/** RabbitMQ has no longer routing keys, so that no device can have subscribed to one. */
const maxKeyBytes = 255

const routingKeyOf = (topic: string): string => topic.replaceAll("/", ".")

const notTaken = (cause: unknown) =>
  new BrokerUnreachable({ message: `RabbitMQ has not taken a message: ${String(cause)}` })

/**
 * Publishes on two channels of the connection: RabbitMQ confirms what comes on one of
 * them. While the broker has no memory or no disk it reads nothing from a connection
 * that publishes, so nothing is written then, and the connection is for nothing else.
 */
export const make = Effect.fnUntraced(function*(
  connection: ChannelModel
): Effect.fn.Return<Publisher, BrokerUnreachable, Scope.Scope> {
  const confirming = yield* attempt(() => connection.createConfirmChannel())
  const sending = yield* attempt(() => connection.createChannel())
  /** The ids of messages that no device has subscribed to. */
  const returned = new Set<string>()
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
  confirming.on("return", ({ properties }: Message) => void returned.add(String(properties.messageId)))
  for (const channel of [confirming, sending]) channel.on("error", () => {})

  return {
    publish: (topic, payload) => {
      const routingKey = routingKeyOf(topic)
      if (Buffer.byteLength(routingKey) > maxKeyBytes) return Effect.succeed(false)
      return Effect.callback((resume) => {
        if (blocked !== undefined) return resume(Effect.fail(notTaken(blocked)))
        const messageId = String(++lastId)
        try {
          confirming.publish(
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
      })
    },
    send: (topic, payload) => {
      if (blocked !== undefined) return
      try {
        sending.publish(topicExchange, routingKeyOf(topic), payload)
      } catch {
        // The connection has ended, or the topic is too long: what waits for a reply asks again.
      }
    }
  }
})
