/**
 * Divides the shares among the nodes. One node at a time consumes a share; RabbitMQ
 * refuses a second. Every second each node counts the nodes, takes shares that
 * nobody has, up to its part, and gives away what it has above it.
 */
import type { Channel, ChannelModel, ConsumeMessage } from "amqplib"
import { Effect, Exit, Metric, Scope } from "effect"
import type { BrokerUnreachable, ShareHandler } from "../BrokerLink.ts"
import { attempt, close } from "./Attempt.ts"
import { connectionOf, endedOf, messageOf } from "./Notices.ts"
import type { Topology } from "./Topology.ts"

/** Messages of a share that are on their way to the store. */
const maxUnsettled = 512
/** How long a share waits for these before it goes to another node, which gets those that are left. */
const drainTime = "2 seconds"

const carried = Metric.gauge("device_cloud_mqtt_bridge_shares", {
  description: "Shares of the messages of devices that this server carries"
})

export interface SharesOptions {
  readonly connection: ChannelModel
  readonly names: Topology
  readonly count: number
  readonly open: (share: number) => Effect.Effect<ShareHandler, never, Scope.Scope>
}

interface Held {
  readonly handler: ShareHandler
  readonly scope: Scope.Closeable
  readonly channels: ReadonlyArray<Channel>
  /** Nothing more is handled: what comes goes to the next node. */
  isLeaving: boolean
  /** The broker has ended a channel: what was not settled waits for whoever takes the share. */
  isLost: boolean
}

export interface Shares {
  /** Takes and gives away shares. Returns how many nodes there are. */
  readonly balance: Effect.Effect<number, BrokerUnreachable>
}

/** Makes the shares of one connection. They are given away when the scope closes. */
export const make = Effect.fnUntraced(function*(
  { connection, count, names, open }: SharesOptions
): Effect.fn.Return<Shares, BrokerUnreachable, Scope.Scope> {
  const held = new Map<number, Held>()
  const asking = yield* attempt(() => connection.createChannel())
  asking.on("error", () => {})
  const consumersOf = (queue: string) =>
    Effect.map(attempt(() => asking.checkQueue(queue)), ({ consumerCount }) => consumerCount)
  /** A queue has gone of which this node consumed: it begins anew, and everything is declared again. */
  const beginAnew = () => void connection.close().catch(() => {})
  yield* attempt(() => asking.consume(names.nodes, (message) => message === null && beginAnew(), { noAck: true }))

  /**
   * Opens a channel and consumes a queue alone, until the channel ends. Fails if
   * another node does, or the broker is away.
   */
  const consume = Effect.fnUntraced(function*(
    queue: string,
    unsettled: number,
    onMessage: (message: ConsumeMessage, settle: () => void) => void,
    onEnd: () => void
  ) {
    const channel = yield* attempt(() => connection.createChannel())
    channel.on("error", () => {})
    channel.on("close", onEnd)
    yield* attempt(async () => {
      await channel.prefetch(unsettled)
      await channel.consume(
        queue,
        (message) => {
          if (message === null) return beginAnew()
          let isSettled = false
          onMessage(message, () => {
            // RabbitMQ closes a channel on which a message is acknowledged twice.
            if (isSettled) return
            isSettled = true
            try {
              channel.ack(message)
            } catch {
              // The channel has ended: the message went back to the broker.
            }
          })
        },
        { exclusive: true }
      )
    })
    return channel
  })

  const take = Effect.fnUntraced(function*(share: number) {
    const scope = yield* Scope.make()
    const handler = yield* Scope.provide(open(share), scope)
    const own = { handler, scope, channels: new Array<Channel>(), isLeaving: false, isLost: false }
    const onEnd = () => {
      own.isLost = true
    }
    yield* Effect.gen(function*() {
      // Without a limit: connections that last stay unsettled.
      own.channels.push(
        yield* consume(names.connections(share), 0, (message, settle) => {
          if (own.isLeaving) return
          const ended = endedOf(message)
          if (ended !== undefined) {
            handler.disconnected(ended)
            return settle()
          }
          const connection = connectionOf(message, settle)
          if (connection === undefined) settle()
          else handler.connected(connection)
        }, onEnd)
      )
      own.channels.push(
        yield* consume(names.messages(share), maxUnsettled, (message, settle) => {
          if (!own.isLeaving) handler.message(messageOf(message, settle))
        }, onEnd)
      )
      held.set(share, own)
    }).pipe(
      // Another node was faster.
      Effect.catch((error) => Effect.andThen(Effect.logDebug(error.message), giveAway(own)))
    )
  })

  /** Stops taking messages, waits until those under way are stored, and leaves the rest to the next node. */
  const giveAway = Effect.fnUntraced(function*(own: Held) {
    own.isLeaving = true
    yield* Effect.timeoutOption(own.handler.drained, drainTime)
    yield* Effect.forEach(own.channels, close, { concurrency: "unbounded", discard: true })
    yield* Scope.close(own.scope, Exit.void)
  })

  const leave = (share: number) =>
    Effect.suspend(() => {
      const own = held.get(share)
      held.delete(share)
      return own === undefined ? Effect.void : giveAway(own)
    })

  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      Effect.forEach([...held.keys()], leave, { concurrency: "unbounded", discard: true }),
      Metric.update(carried, 0)
    )
  )

  return {
    balance: Effect.gen(function*() {
      const nodes = Math.max(1, yield* consumersOf(names.nodes))
      const part = Math.ceil(count / nodes)
      const lost = [...held].flatMap(([share, { isLost }]) => isLost ? [share] : [])
      yield* Effect.forEach(lost, leave, { concurrency: "unbounded", discard: true })
      yield* Effect.forEach([...held.keys()].slice(part), leave, { concurrency: "unbounded", discard: true })
      for (let share = 0; share < count && held.size < part; share++) {
        if (!held.has(share) && (yield* consumersOf(names.messages(share))) === 0) yield* take(share)
      }
      yield* Metric.update(carried, held.size)
      return nodes
    })
  }
})
