/**
 * Carries notices between the nodes of one cloud. A feature declares a channel of
 * its own where it uses it; this port carries the notices of all channels.
 *
 * A notice is a hint. The store holds the truth: a node that may have missed a
 * notice reads the store again.
 */
import { Context, Effect, Schema, type Scope, Stream } from "effect"
import type { Json } from "../kernel/Json.ts"
import type { StoreError } from "../kernel/StoreError.ts"

/** A notice on its way between nodes. */
export interface Notice {
  /** The name of the channel. */
  readonly channel: string
  readonly payload: Json
}

/**
 * Port. Laws: the other nodes hear the notices of a node in the order in which
 * that node publishes them, or they hear `missed` in place of lost ones. A node
 * may hear its own notices. A notice has at most 7 KB as JSON.
 */
export class NodeBus extends Context.Service<NodeBus, {
  /** Sends notices to the other nodes. */
  readonly publish: (notices: ReadonlyArray<Notice>) => Effect.Effect<void, StoreError>
  /** Emits the notices from now on. `missed`: notices before this point may be lost. The stream never ends. */
  readonly notices: Stream.Stream<Notice | "missed">
}>()("@device-cloud/core/cluster/NodeBus") {
  /**
   * Declares a channel whose notices fit `schema`, for example
   * `NodeBus.channel("ota/due", Schema.Struct({ taskId: Schema.Int }))`.
   */
  static readonly channel = <A>(
    name: string,
    /** The encoded form is JSON. */
    schema: Schema.Codec<A, unknown>
  ): Effect.Effect<Channel<A>, never, NodeBus> => {
    const encode = Schema.encodeUnknownSync(schema)
    const decode = Schema.decodeUnknownEffect(schema)
    return Effect.map(NodeBus, (bus) => ({
      publish: (notices) =>
        Effect.suspend(() =>
          notices.length === 0
            ? Effect.void
            : bus.publish(notices.map((notice) => ({ channel: name, payload: encode(notice) as Json })))
        ),
      subscribe: ({ heard, missed }) =>
        bus.notices.pipe(
          Stream.filter((notice) => notice === "missed" || notice.channel === name),
          Stream.runForEach((notice) =>
            (notice === "missed" ? missed : Effect.flatMap(decode(notice.payload), heard)).pipe(
              Effect.catchCause((cause) => Effect.logWarning(`A notice of ${name} has no effect here`, cause))
            )
          ),
          Effect.forkScoped,
          Effect.asVoid
        )
    }))
  }
}

/** A channel between nodes. */
export interface Channel<A> {
  /** Sends notices to the other nodes. Without effect for an empty list. */
  readonly publish: (notices: ReadonlyArray<A>) => Effect.Effect<void, StoreError>
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
