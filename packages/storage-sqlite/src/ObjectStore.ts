/**
 * Objects on SQLite, in parts. For files of some mebibytes; many large ones belong
 * into a directory (`FileObjectStore` of `platform-node`).
 */
import {
  inParts,
  type NewObject,
  ObjectStore,
  ObjectTooLarge,
  type ProjectId,
  type StoredObject,
  StoreError
} from "@device-cloud/core"
import { Effect, Layer, Option, Stream } from "effect"
import { createHash } from "node:crypto"
import { Sqlite } from "./Sqlite.ts"
import { DatabaseError } from "./SqliteErrors.ts"

/** Can be replaced alone. When it is built, it removes what the end of a process has left of uploads. */
export const layer: Layer.Layer<ObjectStore, DatabaseError, Sqlite> = Layer.effect(
  ObjectStore,
  Effect.flatMap(
    Sqlite,
    (sql) =>
      sql.write("ObjectStore.layer", () => sql.run("DELETE FROM object WHERE NOT is_whole")).pipe(
        Effect.as(make(sql)),
        Effect.mapError((cause) => new DatabaseError({ message: cause.message, cause }))
      )
  )
)

const partSize = 256 * 1024
/** Bytes of the disk that uploads leave for what devices and the API store. */
const reserve = 32 * 1024 ** 2

interface Row {
  readonly object_id: string
  readonly project_id: string
  readonly file_name: string
  readonly size: number
  readonly md5: string
  readonly sha256: string
  readonly is_counted: number | null
  readonly created_at: number
}

const fromRow = (row: Row): StoredObject => ({
  objectId: row.object_id,
  projectId: row.project_id as ProjectId,
  fileName: row.file_name,
  size: row.size,
  md5: row.md5,
  sha256: row.sha256,
  createdAt: row.created_at,
  ...row.is_counted === null ? {} : { isCounted: row.is_counted === 1 }
})

const make = (sql: Sqlite["Service"]) => {
  const begin = ({ createdAt, fileName, isCounted, objectId, projectId }: NewObject) =>
    sql.write("ObjectStore.write", () =>
      sql.run(
        `INSERT INTO object (object_id, project_id, file_name, size, md5, sha256, is_counted, is_whole, created_at)
          VALUES (?, ?, ?, 0, '', '', ?, false, ?)`,
        [objectId, projectId, fileName, isCounted ?? null, createdAt]
      ))

  /** What a removed object leaves stays in the file: on a disk that is full, nothing else could be written, either. */
  const hasRoom = Effect.suspend(() =>
    sql.room() >= reserve ? Effect.void : Effect.fail(
      new StoreError({
        operation: "ObjectStore.write",
        retryable: true,
        cause: new Error(`The disk of the database has less than ${reserve / 1024 ** 2} MiB left`)
      })
    )
  )

  const storePart = (objectId: string, position: number, bytes: Uint8Array) =>
    Effect.andThen(
      hasRoom,
      sql.write("ObjectStore.write", () =>
        sql.run(
          "INSERT INTO object_part (object, position, bytes) SELECT number, ?, ? FROM object WHERE object_id = ?",
          [position, bytes, objectId]
        ))
    )

  const write = Effect.fnUntraced(
    function*<E>(object: NewObject, content: Stream.Stream<Uint8Array, E>, maximum: number) {
      yield* begin(object)
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
          Stream.runForEach((part) => storePart(object.objectId, position++, part))
        )
        const facts = { size, md5: md5.digest("hex"), sha256: sha256.digest("hex") }
        yield* sql.write(
          "ObjectStore.write",
          () =>
            sql.run("UPDATE object SET size = ?, md5 = ?, sha256 = ?, is_whole = true WHERE object_id = ?", [
              size,
              facts.md5,
              facts.sha256,
              object.objectId
            ])
        )
        return { ...object, ...facts }
      }).pipe(
        Effect.onError(() =>
          Effect.ignore(
            sql.write("ObjectStore.write", () =>
              sql.run("DELETE FROM object WHERE object_id = ? AND NOT is_whole", [object.objectId]))
          )
        )
      )
    }
  )

  /** Returns a part; an object that has been removed meanwhile has no more of them. */
  const partOf = (objectId: string, position: number): Effect.Effect<Option.Option<Uint8Array>, StoreError> =>
    sql.read("ObjectStore.read", () =>
      Option.map(
        Option.fromUndefinedOr(
          sql.get<{ readonly bytes: ArrayBuffer }>(
            `SELECT bytes FROM object_part WHERE object = (SELECT number FROM object WHERE object_id = ?)
              AND position = ?`,
            [objectId, position]
          )
        ),
        ({ bytes }) => new Uint8Array(bytes)
      ))

  return ObjectStore.of({
    write,
    find: (objectId) =>
      sql.read("ObjectStore.find", () =>
        Option.map(
          Option.fromUndefinedOr(sql.get<Row>("SELECT * FROM object WHERE object_id = ? AND is_whole", [objectId])),
          fromRow
        )),
    read: ({ objectId, size }, { end, start } = { start: 0, end: size - 1 }) => {
      if (size === 0) return Stream.empty
      const [first, last] = [Math.floor(start / partSize), Math.floor(end / partSize)]
      return Stream.paginate(first, (position) =>
        Effect.map(partOf(objectId, position), (part) => {
          const from = position * partSize
          const bytes = Option.map(part, (bytes) =>
            bytes.subarray(Math.max(0, start - from), Math.min(bytes.length, end + 1 - from)))
          const isLast = Option.isNone(part) || position === last
          return [Option.toArray(bytes), isLast ? Option.none() : Option.some(position + 1)] as const
        }))
    },
    remove: (objectId) =>
      sql.write(
        "ObjectStore.remove",
        () => sql.run("DELETE FROM object WHERE object_id = ? AND is_whole", [objectId]) > 0
      )
  })
}
