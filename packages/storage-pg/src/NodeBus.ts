/**
 * Notices between nodes, over the notifications of PostgreSQL.
 *
 * Transactions that notify commit one after the other, whoever listens. So the
 * notices of a node are gathered into few of them, and none waits for the disk: a
 * notice is a hint, which the end of the database may take with it
 * (docs/decisions/0088-notices-have-addresses.md).
 */
import { Batcher, NodeBus, type Notice, NoticeListeners, Outage, type StoreError } from "@device-cloud/core"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Effect, Layer, Queue, Schedule } from "effect"
import type { SqlError } from "effect/sql"
import { storeError } from "./PgErrors.ts"
import { texts } from "./PgParameters.ts"

/** All nodes listen here. */
const everybody = "device_cloud"

/** One node listens here. */
const oneNode = (nodeId: string): string => `${everybody}_${nodeId}`

/** A notice of a node, in its notification. */
const textOf = (from: string, { channel, payload }: Notice): string => `${from} ${channel} ${payload}`

/** Returns the notice; undefined: it is of the node `own`. */
const noticeOf = (text: string, own: string): Notice | undefined => {
  if (text.startsWith(own)) return undefined
  const start = text.indexOf(" ") + 1
  const end = text.indexOf(" ", start)
  return { channel: text.slice(start, end), payload: text.slice(end + 1) }
}

interface Notification {
  readonly channel: string
  readonly payload: string
}

/** How often the connection is used at least: one that does not answer ends, and nobody may have anything to say. */
const useEvery = "10 seconds"

/** Calls that may wait to be published. */
const capacity = 1024
/** Calls in one transaction. */
const maxBatch = 256

const statement = `
  WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
  SELECT pg_notify(channel, payload)
  FROM quick, unnest($1::text[], $2::text[]) WITH ORDINALITY AS notification (channel, payload, position)
  ORDER BY position`

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const [own] = yield* sql<{ readonly id: string }>`SELECT gen_random_uuid()::text AS id`
  const nodeId = own!.id
  const listeners = new NoticeListeners()
  const outage = Outage.make("Other nodes cannot be heard")

  /**
   * The connection that hears and publishes; undefined: there is none now. On one that
   * others use, a notice waits for the statements before it.
   */
  let connected: PgConnection.PgConnection | undefined

  /** Hears what comes for all and for this node until the connection breaks. */
  const listen = Effect.gen(function*() {
    const connection = yield* Effect.flatMap(PgConnection.make(sql.config), ({ pin }) => pin)
    const queues = [yield* connection.listen(everybody), yield* connection.listen(oneNode(nodeId))]
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        connected = connection
      }),
      () =>
        Effect.sync(() => {
          connected = undefined
        })
    )
    // What was published before is missed.
    listeners.hear("missed")
    if (yield* outage.over) yield* Effect.logInfo("Other nodes can be heard again")
    const hear = (queue: (typeof queues)[number]) =>
      Effect.forever(Effect.map(Queue.takeAll(queue), (notifications) => {
        for (const { payload } of notifications) {
          const notice = noticeOf(payload, nodeId)
          if (notice !== undefined) listeners.hear(notice)
        }
      }))
    // Nothing changes by it.
    const use = Effect.schedule(connection.query(`LISTEN ${everybody}`), Schedule.spaced(useEvery))
    yield* Effect.all([...queues.map(hear), use], { concurrency: "unbounded" })
  })
  yield* Effect.scoped(listen).pipe(
    Effect.tapError(outage.failed),
    Effect.retry(Schedule.spaced("1 second")),
    Effect.orDie,
    Effect.forkScoped
  )

  const notify = (notifications: ReadonlyArray<Notification>) =>
    Effect.suspend(() => {
      const params = [
        texts(notifications.map(({ channel }) => channel)),
        texts(notifications.map(({ payload }) => payload))
      ]
      return connected === undefined
        ? Effect.asVoid(sql.unsafe(statement, params))
        : Effect.asVoid(connected.query(statement, params))
    }).pipe(Effect.mapError(storeError("NodeBus.publish")))
  const publisher = yield* Batcher.make<ReadonlyArray<Notification>, void, StoreError>({
    capacity,
    maxBatch,
    commit: (calls) => Effect.as(notify(calls.flat()), calls.map(() => undefined)),
    isolates: ({ retryable }) => !retryable
  })

  return NodeBus.of({
    nodeId,
    publish: (notices, to) =>
      notices.length === 0 ? Effect.void : publisher.submit(notices.map((notice) => ({
        channel: to === undefined ? everybody : oneNode(to),
        payload: textOf(nodeId, notice)
      }))),
    listen: listeners.listen
  })
})

/** Stands alone: it needs no table. */
export const layer: Layer.Layer<NodeBus, SqlError.SqlError, PgClient.PgClient> = Layer.effect(NodeBus, make)
