/**
 * Notices between nodes, over the notifications of PostgreSQL.
 */
import { NodeBus, type Notice } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, PubSub, Schedule, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { storeError } from "./PgErrors.ts"
import { texts } from "./PgParameters.ts"

const notification = "device_cloud_node"

interface Payload extends Notice {
  /** The node that publishes the notice. */
  readonly from: string
}

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const [own] = yield* sql<{ readonly id: string }>`SELECT gen_random_uuid()::text AS id`
  const from = own!.id
  const heard = yield* Effect.acquireRelease(PubSub.unbounded<Notice | "missed">(), PubSub.shutdown)

  // One connection listens for all channels.
  yield* Stream.unwrap(Effect.map(sql.listen(notification), (notifications) =>
    Stream.fromQueue(notifications).pipe(
      Stream.map(({ payload }) => JSON.parse(payload) as Payload),
      Stream.filter((notice) => notice.from !== from),
      // Each connection that begins to listen has missed what was published before.
      (notices) => Stream.concat(Stream.succeed("missed" as const), notices)
    ))).pipe(
      Stream.runForEach((notice) => PubSub.publish(heard, notice)),
      Effect.tapError((error) => Effect.logWarning("Other nodes cannot be heard", error)),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.orDie,
      Effect.forkScoped
    )

  return NodeBus.of({
    publish: (notices) =>
      notices.length === 0
        ? Effect.void
        : sql`SELECT pg_notify(${notification}, payload) FROM unnest(${
          texts(notices.map(({ channel, payload }) => JSON.stringify({ from, channel, payload } satisfies Payload)))
        }) AS payload`.pipe(
          Effect.asVoid,
          Effect.mapError(storeError("NodeBus.publish"))
        ),
    notices: Stream.fromPubSub(heard)
  })
})

/** Stands alone: it needs no table. */
export const layer: Layer.Layer<NodeBus, SqlError.SqlError, PgClient.PgClient> = Layer.effect(NodeBus, make)
