/**
 * Objects on PostgreSQL, in parts: every server of a cloud has them. For files of
 * some mebibytes; many large ones belong into an object storage.
 */
import {
  inParts,
  isObjectId,
  type NewObject,
  ObjectStore,
  ObjectTooLarge,
  type ProjectId,
  type StoredObject
} from "@device-cloud/core"
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option, Schedule, Stream } from "effect"
import { createHash } from "node:crypto"
import { type Clients, clients } from "./LongReads.ts"
import { storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Can be replaced alone. */
export const layer: Layer.Layer<ObjectStore, never, PgClient.PgClient> = Layer.effect(
  ObjectStore,
  Effect.gen(function*() {
    const both = yield* clients
    yield* forgetUploads(both.sql)
    return make(both)
  })
)

const partSize = 256 * 1024
/** Parts that one read takes from the database. */
const partsAtOnce = 4

interface Row {
  readonly object_id: string
  readonly project_id: string
  readonly file_name: string
  readonly size: bigint
  readonly md5: string
  readonly sha256: string
  readonly is_counted: boolean | null
  readonly created_at: Date
}

const fromRow = (row: Row): StoredObject => ({
  objectId: row.object_id,
  projectId: row.project_id as ProjectId,
  fileName: row.file_name,
  size: Number(row.size),
  md5: row.md5,
  sha256: row.sha256,
  createdAt: row.created_at.getTime(),
  ...row.is_counted === null ? {} : { isCounted: row.is_counted }
})

const make = ({ reads, sql }: Clients) => {
  const begin = ({ createdAt, fileName, isCounted, objectId, projectId }: NewObject) =>
    sql`INSERT INTO object (object_id, project_id, file_name, size, md5, sha256, is_counted, is_whole, created_at)
      VALUES (${objectId}, ${projectId}, ${fileName}, 0, '', '', ${PgTypes.bool(isCounted ?? null)}, false,
        ${instant(createdAt)})`

  /** Does not wait for the disk: the end of the upload does. */
  const storePart = (objectId: string, position: number, bytes: Uint8Array) =>
    reads`WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
      INSERT INTO object_part (object_id, position, bytes)
      SELECT ${objectId}, ${position}::int, ${PgTypes.bytea(bytes)} FROM quick`

  const remove = (objectId: string, which = sql`is_whole`) =>
    Effect.map(
      sql`DELETE FROM object WHERE object_id = ${objectId} AND ${which} RETURNING object_id`,
      (rows) => rows.length > 0
    )

  const write = Effect.fnUntraced(
    function*<E>(object: NewObject, content: Stream.Stream<Uint8Array, E>, maximum: number) {
      const failed = Effect.mapError(storeError("ObjectStore.write"))
      yield* failed(begin(object))
      return yield* Effect.gen(function*() {
        const [md5, sha256] = [createHash("md5"), createHash("sha256")]
        let size = 0
        let position = 0
        yield* content.pipe(
          Stream.tap((chunk) => {
            size += chunk.length
            if (size > maximum) return Effect.fail(new ObjectTooLarge({ maximum }))
            md5.update(chunk)
            sha256.update(chunk)
            return Effect.void
          }),
          inParts(partSize),
          Stream.runForEach((part) => failed(storePart(object.objectId, position++, part)))
        )
        const facts = { size, md5: md5.digest("hex"), sha256: sha256.digest("hex") }
        yield* failed(sql`UPDATE object SET size = ${size}::bigint, md5 = ${facts.md5}, sha256 = ${facts.sha256},
          is_whole = true WHERE object_id = ${object.objectId}`)
        return { ...object, ...facts }
      }).pipe(Effect.onError(() => Effect.ignore(remove(object.objectId, sql`NOT is_whole`))))
    }
  )

  /** From one position to another, both included, some at a time. */
  const partsOf = (objectId: string, first: number, last: number) =>
    Stream.paginate(first, (position) =>
      Effect.map(
        reads<{ readonly bytes: Uint8Array }>`SELECT bytes FROM object_part
          WHERE object_id = ${objectId} AND position BETWEEN ${position}::int
            AND ${Math.min(last, position + partsAtOnce - 1)}::int
          ORDER BY position`,
        (rows) => {
          const next = position + partsAtOnce
          return [rows.map(({ bytes }) => bytes), next > last ? Option.none() : Option.some(next)] as const
        }
      ))

  return ObjectStore.of({
    write,
    find: (objectId) =>
      isObjectId(objectId)
        ? sql<Row>`SELECT * FROM object WHERE object_id = ${objectId} AND is_whole`.pipe(
          Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
          Effect.mapError(storeError("ObjectStore.find"))
        )
        : Effect.succeedNone,
    read: ({ objectId, size }, { end, start } = { start: 0, end: size - 1 }) => {
      if (size === 0) return Stream.empty
      const [first, last] = [Math.floor(start / partSize), Math.floor(end / partSize)]
      return partsOf(objectId, first, last).pipe(
        Stream.map((bytes, i) => {
          const from = (first + i) * partSize
          return bytes.subarray(Math.max(0, start - from), Math.min(bytes.length, end + 1 - from))
        }),
        Stream.mapError(storeError("ObjectStore.read"))
      )
    },
    remove: (objectId) =>
      isObjectId(objectId)
        ? Effect.mapError(remove(objectId), storeError("ObjectStore.remove"))
        : Effect.succeed(false)
  })
}

/** Removes what a crash has left of uploads; none takes a day. */
const forgetUploads = (sql: PgClient.PgClient) =>
  sql`DELETE FROM object WHERE NOT is_whole AND begun_at < now() - interval '1 day'`.pipe(
    Effect.catch((error) => Effect.logWarning("What is left of uploads could not be removed", error)),
    Effect.repeat(Schedule.spaced("1 hour")),
    Effect.forkScoped
  )
