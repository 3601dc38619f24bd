/**
 * What nodes tell each other, over the notifications of PostgreSQL.
 */
import { NodeBus, type NodeNotice } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, PubSub, Schedule, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { storeError, texts } from "./Sql.ts"

const channel = "device_cloud_node"

interface Payload {
  /** The node that says it. */
  readonly from: string
  readonly notice: NodeNotice
}

const missed: NodeNotice = { _tag: "Missed" }

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const [own] = yield* sql<{ readonly id: string }>`SELECT gen_random_uuid()::text AS id`
  const from = own!.id
  const heard = yield* Effect.acquireRelease(PubSub.unbounded<NodeNotice>(), PubSub.shutdown)

  // One connection listens for all that want to hear.
  yield* Stream.unwrap(Effect.map(sql.listen(channel), (notifications) =>
    Stream.fromQueue(notifications).pipe(
      Stream.map(({ payload }) => JSON.parse(payload) as Payload),
      Stream.filter((said) => said.from !== from),
      Stream.map(({ notice }) => notice),
      // What was told before anybody listened is lost: said once somebody does, so that nothing is between.
      (notices) => Stream.concat(Stream.succeed(missed), notices)
    ))).pipe(
      Stream.runForEach((notice) => PubSub.publish(heard, notice)),
      Effect.tapError((error) => Effect.logWarning("Other nodes cannot be heard", error)),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.orDie,
      Effect.forkScoped
    )

  return NodeBus.of({
    tell: (notices) =>
      notices.length === 0
        ? Effect.void
        : sql`SELECT pg_notify(${channel}, payload) FROM unnest(${
          texts(notices.map((notice) => JSON.stringify({ from, notice } satisfies Payload)))
        }) AS payload`.pipe(
          Effect.asVoid,
          Effect.mapError(storeError("NodeBus.tell"))
        ),
    heard: Stream.fromPubSub(heard)
  })
})

export const layer: Layer.Layer<NodeBus, SqlError.SqlError, PgClient.PgClient> = Layer.effect(NodeBus, make)
