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

const away = (cause: unknown) =>
  new BrokerUnreachable({ message: `RabbitMQ has not taken a message: ${String(cause)}` })

/** Publishes on two channels of the connection: RabbitMQ confirms what comes on one of them. */
export const make = Effect.fnUntraced(function*(
  connection: ChannelModel
): Effect.fn.Return<Publisher, BrokerUnreachable, Scope.Scope> {
  const confirming = yield* attempt(() => connection.createConfirmChannel())
  const sending = yield* attempt(() => connection.createChannel())
  /** The ids of messages that no device has subscribed to. */
  const returned = new Set<string>()
  let lastId = 0
  confirming.on("return", ({ properties }: Message) => void returned.add(String(properties.messageId)))
  for (const channel of [confirming, sending]) channel.on("error", () => {})

  return {
    publish: (topic, payload) => {
      const routingKey = routingKeyOf(topic)
      if (Buffer.byteLength(routingKey) > maxKeyBytes) return Effect.succeed(false)
      return Effect.callback((resume) => {
        const messageId = String(++lastId)
        try {
          confirming.publish(
            topicExchange,
            routingKey,
            payload,
            { mandatory: true, persistent: true, messageId },
            (error: unknown) => resume(error ? Effect.fail(away(error)) : Effect.succeed(!returned.delete(messageId)))
          )
        } catch (error) {
          resume(Effect.fail(away(error)))
        }
      })
    },
    send: (topic, payload) => {
      try {
        sending.publish(topicExchange, routingKeyOf(topic), payload)
      } catch {
        // The connection has ended, or the topic is too long: what waits for a reply asks again.
      }
    }
  }
})
