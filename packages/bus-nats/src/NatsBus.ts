/**
 * Notices between nodes on NATS: a subject for all nodes, and one for each.
 *
 * What `publish` has returned from has reached the server. The server gives it to
 * whoever is connected then; a connection that breaks, also because its node reads
 * too slowly, is another one afterwards, which begins with `missed`.
 */
import { NodeBus, type Notice, NoticeListeners, StoreError } from "@device-cloud/core"
import { connect, type ConnectionOptions } from "@device-cloud/nats"
import { Effect, Layer, Schedule } from "effect"
import { randomUUID } from "node:crypto"

export interface NatsBusOptions extends ConnectionOptions {
  /**
   * The beginning of all subjects; default `device-cloud-bus`. Clouds that share
   * nothing but the NATS server need one each.
   */
  readonly prefix?: string | undefined
}

/**
 * A node on the bus. Waits for a server that is not there: until then it hears
 * nothing, and cannot publish.
 */
export const layer = (options: NatsBusOptions): Layer.Layer<NodeBus> => Layer.effect(NodeBus, make(options))

type Connection = Effect.Success<ReturnType<typeof connect>>

const make = Effect.fnUntraced(function*({ prefix = "device-cloud-bus", ...options }: NatsBusOptions) {
  const nodeId = randomUUID()
  const everybody = `${prefix}.all`
  const oneNode = (id: string) => `${prefix}.node.${id}`
  const listeners = new NoticeListeners()
  let connected: Connection | undefined

  const connection = Effect.acquireRelease(connect(options), (connection) =>
    Effect.suspend(() => {
      if (connected === connection) connected = undefined
      return Effect.ignore(Effect.promise(() => connection.close()))
    }))

  /** Hears what comes for all and for this node, until the connection breaks. */
  const listen = Effect.gen(function*() {
    const current = yield* connection
    // The callbacks of one connection run one after the other, whatever the subject.
    const callback = (_: Error | null, message: { readonly string: () => string }) => {
      listeners.hear(noticeOf(message.string()))
    }
    current.subscribe(everybody, { callback })
    current.subscribe(oneNode(nodeId), { callback })
    yield* Effect.tryPromise(() => current.flush())
    // What was published before is missed.
    listeners.hear("missed")
    connected = current
    const cause = yield* Effect.promise(() => current.closed())
    return yield* Effect.fail(cause)
  })
  yield* Effect.scoped(listen).pipe(
    Effect.tapError((error) => Effect.logWarning("Other nodes cannot be heard", error)),
    Effect.retry(Schedule.spaced("1 second")),
    Effect.forkScoped
  )

  return NodeBus.of({
    nodeId,
    publish: (notices, to) =>
      Effect.tryPromise({
        try: async () => {
          if (connected === undefined) throw new Error("There is no connection to NATS")
          const subject = to === undefined ? everybody : oneNode(to)
          for (const notice of notices) connected.publish(subject, textOf(notice))
          await connected.flush()
        },
        catch: (cause) => new StoreError({ operation: "NodeBus.publish", retryable: true, cause })
      }),
    listen: listeners.listen
  })
})

const textOf = ({ channel, payload }: Notice): string => `${channel} ${payload}`

const noticeOf = (text: string): Notice => {
  const end = text.indexOf(" ")
  return { channel: text.slice(0, end), payload: text.slice(end + 1) }
}
