/**
 * Notices between nodes on NATS: a subject for all nodes, and one for each.
 *
 * What `publish` has returned from has reached the server. The server gives it to
 * whoever is connected then; a connection that breaks, also because its node reads
 * too slowly, is another one afterwards, which begins with `missed`.
 */
import { NodeBus, type Notice, NoticeListeners, Outage, StoreError } from "@device-cloud/core"
import { checkUrl, connect, type ConnectionOptions } from "@device-cloud/nats"
import { Deferred, Effect, Layer, Schedule, Schema } from "effect"
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

class Disconnected extends Schema.TaggedError<Disconnected>()("Disconnected", {
  cause: Schema.optional(Schema.Defect()),
  /** What the server does not let the node do. */
  refusal: Schema.optional(Schema.String),
  isSilent: Schema.optional(Schema.Boolean)
}) {
  override get message(): string {
    if (this.refusal !== undefined) return `NATS refuses the node: ${this.refusal}`
    return this.isSilent ? `NATS has not confirmed within ${patience}` : "There is no connection to NATS"
  }
}

/**
 * How long what is published waits for the server: calls of the API wait with it. A
 * connection that is silent for so long counts as broken, so that nobody else waits.
 */
const patience = "2 seconds"

/** What shows whether a node may publish: no notice. */
const trial = ""

interface Connected {
  readonly connection: Effect.Success<ReturnType<typeof connect>>
  /** Fails when the connection has ended. */
  readonly ended: Deferred.Deferred<never, Disconnected>
}

/**
 * Waits until the server has what was sent to it. The promise of the client is left
 * open when the connection ends first.
 */
const flush = ({ connection, ended }: Connected) =>
  Effect.tryPromise(() => connection.flush()).pipe(
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => Effect.andThen(Deferred.fail(ended, new Disconnected({ isSilent: true })), Deferred.await(ended))
    }),
    Effect.raceFirst(Deferred.await(ended))
  )

/** Ends the connection when the server refuses a subject. The server says it beside what it answers. */
const refused = ({ connection, ended }: Connected) =>
  Effect.promise(async () => {
    for await (const status of connection.status()) {
      if (status.type !== "error") continue
      Deferred.doneUnsafe(ended, Effect.fail(new Disconnected({ refusal: status.error.message })))
    }
  })

const make = Effect.fnUntraced(function*({ prefix = "device-cloud-bus", ...options }: NatsBusOptions) {
  checkUrl(options)
  const nodeId = randomUUID()
  const everybody = `${prefix}.all`
  const oneNode = (id: string) => `${prefix}.node.${id}`
  const listeners = new NoticeListeners()
  const outage = Outage.make("Other nodes cannot be heard")
  let connected: Connected | undefined

  const connection = Effect.acquireRelease(connect(options), (connection) =>
    Effect.suspend(() => {
      connected = undefined
      return Effect.ignore(Effect.promise(() => connection.close()))
    }))

  /** Hears what comes for all and for this node, until the connection breaks. */
  const listen = Effect.gen(function*() {
    const current: Connected = { connection: yield* connection, ended: Deferred.makeUnsafe() }
    void current.connection.closed().then((cause) =>
      Deferred.doneUnsafe(current.ended, Effect.fail(new Disconnected({ cause })))
    )
    yield* Effect.forkScoped(refused(current))
    // The callbacks of one connection run one after the other, whatever the subject.
    const callback = (error: Error | null, message: { readonly string: () => string }) => {
      const text = error === null ? message.string() : trial
      if (text !== trial) listeners.hear(noticeOf(text))
    }
    for (const subject of [everybody, oneNode(nodeId)]) {
      current.connection.subscribe(subject, { callback })
      current.connection.publish(subject, trial)
    }
    yield* flush(current)
    // What the server refuses, it says before it confirms.
    yield* Effect.yieldNow
    if (Deferred.isDoneUnsafe(current.ended)) return yield* Deferred.await(current.ended)
    // What was published before is missed.
    listeners.hear("missed")
    if (yield* outage.over) yield* Effect.logInfo("Other nodes can be heard again")
    connected = current
    return yield* Deferred.await(current.ended)
  })
  yield* Effect.scoped(listen).pipe(
    Effect.tapError(outage.failed),
    Effect.retry(Schedule.spaced("1 second")),
    Effect.forkScoped
  )

  return NodeBus.of({
    nodeId,
    publish: (notices, to) =>
      Effect.gen(function*() {
        const current = connected
        if (current === undefined) return yield* new Disconnected({})
        const subject = to === undefined ? everybody : oneNode(to)
        yield* Effect.try(() => notices.forEach((notice) => current.connection.publish(subject, textOf(notice))))
        yield* flush(current)
      }).pipe(
        Effect.mapError((cause) => new StoreError({ operation: "NodeBus.publish", retryable: true, cause }))
      ),
    listen: listeners.listen
  })
})

const textOf = ({ channel, payload }: Notice): string => `${channel} ${payload}`

const noticeOf = (text: string): Notice => {
  const end = text.indexOf(" ")
  return { channel: text.slice(0, end), payload: text.slice(end + 1) }
}
