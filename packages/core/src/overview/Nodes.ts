/**
 * The nodes of the cloud, and the health of its storage.
 */
import { Clock, Context, Duration, Effect, Layer, Option } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { type NodeState, PresenceStore } from "../connection/PresenceStore.ts"
import { PresenceTimes } from "../connection/PresenceTimes.ts"
import * as Periodic from "../kernel/Periodic.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { StoreHealth } from "../kernel/StoreHealth.ts"

/** The health of the storage, as this node sees it. */
export interface StorageState {
  readonly isReachable: boolean
  /** How long the latest check took, milliseconds. */
  readonly latency: number
  /** When it was, Unix milliseconds. */
  readonly checkedAt: number
  /** The latest change of the tables, such as `0046_activity`; null: the storage does not say. */
  readonly migration: string | null
}

export class Nodes extends Context.Service<Nodes, {
  /** Returns the nodes that have spoken and are not known to have ended, by id. */
  readonly list: Effect.Effect<ReadonlyArray<NodeState>, StoreError>
  /** Checks the storage; calls within two seconds share one check. Null: the cloud has no `StoreHealth`. */
  readonly storage: Effect.Effect<StorageState | null>
  /** Says that this node is about to end. */
  readonly drain: Effect.Effect<void>
}>()("@device-cloud/core/overview/Nodes") {
  /** Stores every five seconds what this node says of itself. */
  static readonly layer: Layer.Layer<Nodes, never, DeviceSessions | NodeBus | PresenceStore> = Layer.effect(
    Nodes,
    Effect.suspend(() => make)
  )
}

const reportEvery = "5 seconds"
const reportTimeout = "2 seconds"
const checkTimeout = "3 seconds"
const checkLasts = "2 seconds"

const make = Effect.gen(function*() {
  const { nodeId } = yield* NodeBus
  const sessions = yield* DeviceSessions
  const store = yield* PresenceStore
  const limits = yield* PresenceTimes
  const health = yield* Effect.serviceOption(StoreHealth)
  const startedAt = yield* Clock.currentTimeMillis
  let isDraining = false

  const report = Effect.suspend(() => store.report(nodeId, { startedAt, connections: sessions.count(), isDraining }))
    .pipe(
      Effect.timeout(reportTimeout),
      Effect.catch((error) => Effect.logWarning("The node could not say how it is", error))
    )

  const check = Effect.fnUntraced(function*({ check, migration }: StoreHealth["Service"]) {
    const checkedAt = yield* Clock.currentTimeMillis
    const [latency, found] = yield* Effect.timed(
      Effect.andThen(check, migration ?? Effect.succeed(null)).pipe(Effect.timeout(checkTimeout), Effect.option)
    )
    return {
      isReachable: Option.isSome(found),
      latency: Math.round(Duration.toMillis(latency)),
      checkedAt,
      migration: Option.getOrNull(found)
    }
  })

  const storage = yield* Effect.cachedWithTTL(
    Option.match(health, { onNone: () => Effect.succeed(null), onSome: (found) => check(found) }),
    checkLasts
  )

  yield* report.pipe(Periodic.every(reportEvery))

  return Nodes.of({
    list: store.nodes(limits),
    storage,
    drain: Effect.suspend(() => {
      isDraining = true
      return report
    })
  })
})
