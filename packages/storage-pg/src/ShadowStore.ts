/**
 * Shadows on PostgreSQL.
 */
import {
  type DeviceId,
  emptyShadow,
  type Shadow,
  type ShadowModification,
  type ShadowSide,
  ShadowStore
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { instants, isForeignKeyViolation, storeError, texts, wholeNumbers } from "./Sql.ts"

interface Row {
  readonly device_id: string
  /** Null: the device has no stored shadow. */
  readonly version: bigint | null
  readonly reported: ShadowSide | null
  readonly desired: ShadowSide | null
  readonly updated_at: Date | null
}

const fromRow = (row: Row): Shadow => {
  const deviceId = row.device_id as DeviceId
  return row.version === null ? emptyShadow(deviceId) : {
    deviceId,
    version: Number(row.version),
    reported: row.reported!,
    desired: row.desired!,
    updatedAt: row.updated_at!.getTime()
  }
}

interface Computed<A> {
  readonly modification: ShadowModification<A>
  readonly before: Shadow
  readonly after: Shadow
  readonly answer: A
}

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

  const read = (deviceIds: ReadonlyArray<DeviceId>) =>
    Effect.map(
      sql<Row>`SELECT device.device_id, shadow.version, shadow.reported, shadow.desired, shadow.updated_at
        FROM device LEFT JOIN shadow USING (device_id) WHERE device.device_id = ANY(${texts(deviceIds)})`,
      (rows) => new Map(rows.map((row) => [row.device_id, fromRow(row)]))
    )

  /** Writes, in one statement, those that are still as they were read; answers their devices. */
  const write = (changed: ReadonlyArray<Computed<unknown>>) =>
    Effect.map(
      sql<{ readonly device_id: string }>`
        WITH new AS (
          SELECT * FROM unnest(
            ${texts(changed.map(({ after }) => after.deviceId))},
            ${texts(changed.map(({ after }) => JSON.stringify(after.reported)))}::json[],
            ${texts(changed.map(({ after }) => JSON.stringify(after.desired)))}::json[],
            ${instants(changed.map(({ after }) => after.updatedAt))},
            ${wholeNumbers(changed.map(({ after }) => after.version))}::bigint[],
            ${wholeNumbers(changed.map(({ before }) => before.version))}::bigint[]
          ) AS new (device_id, reported, desired, updated_at, version, version_before)
        ), updated AS (
          UPDATE shadow
          SET reported = new.reported, desired = new.desired, updated_at = new.updated_at, version = new.version
          FROM new WHERE shadow.device_id = new.device_id AND shadow.version = new.version_before
          RETURNING shadow.device_id
        ), inserted AS (
          INSERT INTO shadow (device_id, reported, desired, updated_at, version)
          SELECT device_id, reported, desired, updated_at, version FROM new WHERE version_before = 0
          ON CONFLICT DO NOTHING RETURNING device_id
        )
        SELECT device_id FROM updated UNION ALL SELECT device_id FROM inserted`,
      (rows) => new Set(rows.map(({ device_id }) => device_id))
    ).pipe(
      // A device was deleted after it had been read: nothing was written.
      Effect.catchIf(isForeignKeyViolation, () => Effect.succeed(new Set<string>()))
    )

  const modify = Effect.fnUntraced(function*<A>(modifications: ReadonlyArray<ShadowModification<A>>) {
    const answers = new Map<DeviceId, A>()
    let pending = modifications
    while (pending.length > 0) {
      const shadows = yield* read(pending.map(({ deviceId }) => deviceId))
      const computed = pending.flatMap((modification): ReadonlyArray<Computed<A>> => {
        const before = shadows.get(modification.deviceId)
        if (before === undefined) return []
        const [answer, after] = modification.modify(before)
        return [{ modification, before, after, answer }]
      })
      const changed = computed.filter(({ after, before }) => after !== before)
      const written = changed.length === 0 ? new Set<string>() : yield* write(changed)
      const overtaken: Array<ShadowModification<A>> = []
      for (const { after, answer, before, modification } of computed) {
        if (after === before || written.has(after.deviceId)) answers.set(after.deviceId, answer)
        else overtaken.push(modification)
      }
      pending = overtaken
    }
    return modifications.map(({ deviceId }) =>
      answers.has(deviceId) ? Option.some(answers.get(deviceId)!) : Option.none()
    )
  })

  return ShadowStore.of({
    get: (deviceId) =>
      read([deviceId]).pipe(
        Effect.map((shadows) => Option.fromUndefinedOr(shadows.get(deviceId))),
        Effect.mapError(storeError("ShadowStore.get"))
      ),
    modify: (modifications) => Effect.mapError(modify(modifications), storeError("ShadowStore.modify"))
  })
})

export const layer: Layer.Layer<ShadowStore, never, PgClient.PgClient> = Layer.effect(ShadowStore, make)
