/**
 * The exchanges and queues of the cloud at RabbitMQ, beside those of its MQTT
 * plug-in.
 */
import type { Channel } from "amqplib"

/** On which the MQTT plug-in publishes what devices say, and from which they get what they have subscribed to. */
export const topicExchange = "amq.topic"
/** On which the plug-in `rabbitmq_event_exchange` says who comes and goes. */
const eventExchange = "amq.rabbitmq.event"

/** The families of topics (docs/protocol/topics.md), as routing keys. */
const families = [".sys.#", ".ext.#", ".ota.#", ".shadow.#", ".*.*.user.#"]

/** Connections that came and went while no node was there; beyond, the oldest are forgotten. */
const maxNotices = 1_000_000

export interface Topology {
  /** Each node consumes from it, so that it has as many consumers as there are nodes. */
  readonly nodes: string
  /** What devices say, by share. Survives the broker. */
  readonly messages: (share: number) => string
  /** Which devices came and went, by share. Ends with the broker, as the connections do. */
  readonly connections: (share: number) => string
}

/** The queues whose names begin with `prefix`. */
export const topology = (prefix: string, shares: number): Topology => ({
  nodes: `${prefix}.nodes`,
  messages: (share) => `${prefix}.messages.${share}-of-${shares}`,
  connections: (share) => `${prefix}.connections.${share}-of-${shares}`
})

/** Declares everything; without effect for what is there. */
export const declare = async (channel: Channel, prefix: string, shares: number): Promise<void> => {
  const { connections, messages, nodes } = topology(prefix, shares)
  await channel.assertQueue(nodes, { durable: false, autoDelete: true })

  // Messages of devices have this header. What the cloud publishes has not, and does not come back.
  const fromDevices = `${prefix}.from-devices`
  await channel.assertExchange(fromDevices, "headers", { durable: true })
  for (const family of families) await channel.bindExchange(fromDevices, topicExchange, family)
  // A topic always goes to the same share, so that its messages keep their order.
  const byTopic = `${prefix}.by-topic-${shares}`
  await channel.assertExchange(byTopic, "x-consistent-hash", { durable: true })
  await channel.bindExchange(byTopic, fromDevices, "", { "x-match": "all-with-x", "x-mqtt-publish-qos": null })

  // The end of a connection does not say whose it was: all shares hear of it.
  const byDevice = `${prefix}.by-device-${shares}`
  await channel.assertExchange(byDevice, "x-consistent-hash", {
    durable: true,
    arguments: { "hash-header": "user" }
  })
  await channel.bindExchange(byDevice, eventExchange, "connection.created")

  for (let share = 0; share < shares; share++) {
    await channel.assertQueue(messages(share), { durable: true })
    await channel.bindQueue(messages(share), byTopic, "1")
    await channel.assertQueue(connections(share), { durable: false, arguments: { "x-max-length": maxNotices } })
    await channel.bindQueue(connections(share), byDevice, "1")
    await channel.bindQueue(connections(share), eventExchange, "connection.closed")
  }
}
