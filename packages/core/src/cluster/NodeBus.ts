/**
 * Carries notices between the nodes of one cloud. A feature declares a channel of
 * its own where it uses it; this port carries the notices of all channels.
 *
 * A notice is a hint. The store holds the truth: a node that may have missed a
 * notice reads the store again.
 */
import { Context, Effect, Queue, Schema, type Scope } from "effect"
import { given } from "../kernel/GivenEffect.ts"
import { StoreError } from "../kernel/StoreError.ts"

/** A notice on its way between nodes. */
export interface Notice {
  /** The name of the channel, without spaces. */
  readonly channel: string
  /** At most {@link maxNoticeBytes}. */
  readonly payload: string
}

/** Bytes of UTF-8 in a notice. */
export const maxNoticeBytes = 7 * 1024

/**
 * Port. Laws: a node hears what another one publishes to all nodes in the order in
 * which that node publishes it, and so what it publishes to this node alone, or it
 * hears `missed` in place of what is lost. Equal notices that are published
 * together may be heard as one. A node may hear its own notices.
 */
export class NodeBus extends Context.Service<NodeBus, {
  /** Who this node is to the others: another id whenever it starts, at most 40 characters `[A-Za-z0-9-]`. */
  readonly nodeId: string
  /**
   * Sends notices to the other nodes. `to`: only the node with this id hears them, if it
   * is there. May return before they are heard.
   */
  readonly publish: (notices: ReadonlyArray<Notice>, to?: string) => Effect.Effect<void, StoreError>
  /**
   * Calls `heard` with each notice from now on, until the scope closes. `missed`: notices
   * before this point may be lost. `heard` returns at once and does not throw.
   */
  readonly listen: (heard: (notice: Notice | "missed") => void) => Effect.Effect<void, never, Scope.Scope>
}>()("@device-cloud/core/cluster/NodeBus") {
  /**
   * Declares a channel whose notices fit `schema`, for example
   * `NodeBus.channel("ota/due", Schema.Struct({ taskId: Schema.Int }))`.
   */
  static readonly channel = <A>(
    name: string,
    /** The encoded form is JSON, of at most 7 KB. */
    schema: Schema.Codec<A, unknown>
  ): Effect.Effect<Channel<A>, never, NodeBus> => {
    const encode = Schema.encodeUnknownSync(schema)
    const decode = Schema.decodeUnknownEffect(schema)
    const publish = (bus: NodeBus["Service"], payloads: ReadonlyArray<string>, to: string | undefined) => {
      const longest = payloads.reduce((longest, payload) => Math.max(longest, sizeOf(payload)), 0)
      return longest <= maxNoticeBytes
        ? given(
          "publish of the NodeBus",
          () => bus.publish(payloads.map((payload) => ({ channel: name, payload })), to)
        )
          .pipe(Effect.catchDefect((cause) => Effect.fail(notPublished(cause))))
        : Effect.fail(tooLarge(name, longest))
    }
    return Effect.map(NodeBus, (bus) => ({
      publish: (notices, to) =>
        Effect.suspend(() =>
          notices.length === 0
            ? Effect.void
            : publish(bus, notices.map((notice) => JSON.stringify(encode(notice))), to)
        ),
      subscribe: Effect.fnUntraced(function*({ heard, missed }) {
        const queue = yield* Queue.unbounded<Notice | "missed">()
        // A notice wakes its own channel, not those of all others.
        yield* bus.listen((notice) => {
          if (notice === "missed" || notice.channel === name) Queue.offerUnsafe(queue, notice)
        })
        const take = Effect.flatMap(Queue.take(queue), (notice) =>
          (notice === "missed"
            ? missed
            : Effect.flatMap(Effect.suspend(() => decode(JSON.parse(notice.payload))), heard)).pipe(
              Effect.catchCause((cause) => Effect.logWarning(`A notice of ${name} has no effect here`, cause))
            ))
        yield* Effect.forkScoped(Effect.forever(take, { disableYield: true }))
      })
    }))
  }
}

/** Who listens on a node, for adapters of the port: `hear` calls them. */
export class NoticeListeners {
  readonly #listeners = new Set<(notice: Notice | "missed") => void>()

  /** `listen` of the port. */
  readonly listen: NodeBus["Service"]["listen"] = (heard) =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => this.#listeners.add(heard)),
      () => Effect.sync(() => this.#listeners.delete(heard))
    ))

  hear(notice: Notice | "missed"): void {
    for (const heard of this.#listeners) heard(notice)
  }
}

const encoder = new TextEncoder()

/** Bytes of UTF-8. */
const sizeOf = (text: string): number => 3 * text.length <= maxNoticeBytes ? text.length : encoder.encode(text).length

const notPublished = (cause: unknown) => new StoreError({ operation: "NodeBus.publish", retryable: false, cause })

const tooLarge = (channel: string, size: number) =>
  notPublished(new Error(`A notice of ${channel} has ${size} bytes; expected at most ${maxNoticeBytes}`))

/** A channel between nodes. */
export interface Channel<A> {
  /**
   * Sends notices to the other nodes, or to the one with the id `to`. Without effect
   * for an empty list. Fails if one is larger than 7 KB, and if the bus dies.
   */
  readonly publish: (notices: ReadonlyArray<A>, to?: string) => Effect.Effect<void, StoreError>
  /**
   * Calls `heard` with each notice, one after the other, and `missed` when
   * notices may be lost, until the scope closes. Logs a notice that does not fit
   * the schema (from a node of another version) and skips it.
   */
  readonly subscribe: (handlers: {
    readonly heard: (notice: A) => Effect.Effect<void>
    readonly missed: Effect.Effect<void>
  }) => Effect.Effect<void, never, Scope.Scope>
}
