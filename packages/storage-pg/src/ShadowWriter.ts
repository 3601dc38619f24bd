/**
 * Writes shadows and what is stored with them, in one statement.
 */
import {
  type CommandProgress,
  type DeviceCommit,
  type DeviceId,
  emptyShadow,
  executionsOf,
  type Shadow,
  type ShadowSide,
  StoreError,
  untilStored,
  type UplinkBatch,
  type UplinkFacts
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { advanceCommands } from "./CommandRow.ts"
import { insertNumbered, type NumberedEvent } from "./FeedWriter.ts"
import { insertExecutions } from "./SceneRow.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { eachByIndex, instants, texts, wholeNumbers } from "./PgParameters.ts"
import type * as UplinkReceipts from "./UplinkReceipts.ts"

/** What `ShadowStore` and `UplinkStore` share: which shadows were written here last. */
export class ShadowWriter extends Context.Service<ShadowWriter, {
  /** The stored shadows of those devices that exist. */
  readonly read: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<ReadonlyMap<string, Shadow>, SqlError.SqlError>
  /**
   * As `UplinkStore.commit`. `operation` names the call in errors. With `certainly`,
   * a failure says that nothing was stored also if the connection has ended; that
   * may wait until the database is back.
   */
  readonly commit: <A>(
    operation: string,
    batch: UplinkBatch<A>,
    certainly?: UplinkReceipts.UplinkReceipts["certainly"]
  ) => Effect.Effect<ReadonlyArray<Option.Option<A>>, StoreError>
}>()("@device-cloud/storage-pg/ShadowWriter") {
  static readonly layer: Layer.Layer<ShadowWriter, never, PgClient.PgClient> = Layer.effect(
    ShadowWriter,
    Effect.suspend(() => make)
  )
}

/** A row of the table `shadow`, or of a device without one. */
export interface ShadowRow {
  readonly device_id: string
  /** Null: the device has no stored shadow. */
  readonly version: bigint | null
  readonly reported: ShadowSide | null
  readonly desired: ShadowSide | null
  readonly updated_at: Date | null
}

export const shadowFromRow = (row: ShadowRow): Shadow => {
  const deviceId = row.device_id as DeviceId
  return row.version === null ? emptyShadow(deviceId) : {
    deviceId,
    version: Number(row.version),
    reported: row.reported!,
    desired: row.desired!,
    updatedAt: row.updated_at!.getTime()
  }
}

/** A shadow with the numbers that the feed has for its device and project. */
interface Known {
  readonly shadow: Shadow
  readonly device: number
  readonly project: number
}

interface Computed<A> {
  readonly device: DeviceCommit<A>
  readonly known: Known
  readonly before: Shadow
  readonly after: Shadow
  readonly result: A
  readonly facts: UplinkFacts
}

const asStoreError = (operation: string) => (error: SqlError.SqlError | StoreError): StoreError =>
  error._tag === "StoreError" ? error : storeError(operation)(error)

/** Shadows that are remembered after they were written. */
const maxRemembered = 10_000

/** What a statement writes. */
interface Written {
  readonly computed: ReadonlyArray<Computed<unknown>>
  readonly commands: ReadonlyArray<CommandProgress>
  readonly happened: ReadonlyArray<NumberedEvent>
}

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

  const read = (deviceIds: ReadonlyArray<DeviceId>) =>
    Effect.map(
      sql<ShadowRow & { readonly device: bigint; readonly project: bigint }>`
        SELECT device.device_id, shadow.version, shadow.reported, shadow.desired, shadow.updated_at,
          device.id AS device, project.seq AS project
        FROM device JOIN project ON project.id = device.project_id LEFT JOIN shadow USING (device_id)
        WHERE device.device_id = ANY(${texts(deviceIds)})`,
      (rows) =>
        new Map(rows.map((row): [string, Known] => [
          row.device_id,
          { shadow: shadowFromRow(row), device: Number(row.device), project: Number(row.project) }
        ]))
    )

  /**
   * Writes, in one statement, the shadows that are still as they were read, what
   * belongs to them, and steps of commands. Returns the devices whose shadows
   * were written; none: nothing at all was written.
   */
  const write = (
    { commands, computed, happened }: Written,
    certainly: UplinkReceipts.UplinkReceipts["certainly"] | undefined
  ) => {
    // Sorted, so that statements that write the same shadows wait for each other in one order.
    const changed = computed.filter(({ after, before }) => after !== before)
      .toSorted((a, b) => a.after.deviceId < b.after.deviceId ? -1 : 1)
    const recorded = [
      ...happened,
      ...computed.flatMap(({ after, before, facts, known: { device, project } }) =>
        facts.happened.map((event) => ({ event, device, project, boundTo: after === before ? null : after.deviceId }))
      )
    ]
    const fired = computed.flatMap(({ after, before, facts }) =>
      executionsOf(facts.reactions).map((execution) => after === before ? { execution } : { execution, bound: after })
    )
    if (changed.length + recorded.length + fired.length === 0) {
      const nothing = Option.some(new Set<string>())
      return commands.length === 0 ? Effect.succeed(nothing) : Effect.as(advanceCommands(sql, commands), nothing)
    }
    // What there is none of is left out: a part without rows costs as much as some rows.
    const none = sql`(SELECT device_id FROM shadow LIMIT 0)`
    const first = changed.filter(({ before }) => before.version === 0)
    const parts = changed.length === 0 ? [sql`written AS ${none}`, sql`passed_over AS ${none}`] : [
      // Devices are locked before shadows: whoever removes both does so, too.
      ...first.length === 0 ? [] : [
        sql`beginning AS (
          SELECT device_id FROM device WHERE device_id = ANY(${texts(first.map(({ after }) => after.deviceId))})
          ORDER BY device_id FOR KEY SHARE
        )`
      ],
      sql`new AS (
        SELECT * FROM unnest(
          ${texts(changed.map(({ after }) => after.deviceId))},
          ${texts(changed.map(({ after }) => JSON.stringify(after.reported)))}::json[],
          ${texts(changed.map(({ after }) => JSON.stringify(after.desired)))}::json[],
          ${instants(changed.map(({ after }) => after.updatedAt))},
          ${wholeNumbers(changed.map(({ after }) => after.version))}::bigint[],
          ${wholeNumbers(changed.map(({ before }) => before.version))}::bigint[],
          ${instants(changed.map(({ before }) => before.updatedAt))}
        ) AS new (device_id, reported, desired, updated_at, version, version_before, updated_before)
        ${eachByIndex(sql, changed.length)}
      ), updated AS (
        UPDATE shadow
        SET reported = new.reported, desired = new.desired, updated_at = new.updated_at, version = new.version
        FROM new WHERE shadow.device_id = new.device_id AND shadow.version = new.version_before
          -- A device may set its version back: the same one may come again.
          AND shadow.updated_at = new.updated_before
          ${first.length === 0 ? sql`` : sql`AND (SELECT count(*) FROM beginning) >= 0`}
        RETURNING shadow.device_id
      )`,
      ...first.length === 0 ? [sql`written AS (SELECT device_id FROM updated)`] : [
        sql`inserted AS (
          INSERT INTO shadow (device_id, reported, desired, updated_at, version)
          SELECT device_id, reported, desired, updated_at, version FROM new JOIN beginning USING (device_id)
          ON CONFLICT DO NOTHING RETURNING device_id
        ), written AS (
          SELECT device_id FROM updated UNION ALL SELECT device_id FROM inserted
        )`
      ],
      sql`passed_over AS (
        SELECT device_id FROM new WHERE device_id NOT IN (SELECT device_id FROM written)
      )`
    ]
    if (recorded.length > 0) parts.push(sql`recorded AS (${insertNumbered(sql, recorded)})`)
    if (fired.length > 0) parts.push(sql`fired AS (${insertExecutions(sql, fired)})`)
    if (commands.length > 0) parts.push(sql`answered AS (${advanceCommands(sql, commands)})`)
    const run = (receipt: ReadonlyArray<Statement.Fragment>) =>
      Effect.map(
        sql<{ readonly device_id: string }>`WITH ${sql.csv([...parts, ...receipt])} SELECT device_id FROM written`,
        (rows) => Option.some(new Set(rows.map(({ device_id }) => device_id)))
      )
    return certainly === undefined ? run([]) : certainly(
      (receipt) => run([sql`received AS (${receipt})`]),
      (passedOver) => {
        const stored = new Set<string>(changed.map(({ after }) => after.deviceId))
        for (const deviceId of passedOver) stored.delete(deviceId)
        return Option.some(stored)
      }
    )
  }

  /** Shadows as they were last written here; those of the devices that were written first come first. */
  const written = new Map<DeviceId, Known>()

  const remember = (known: Known) => {
    // In its place: a map in which entries move all the time is copied all the time.
    written.set(known.shadow.deviceId, known)
    if (written.size > maxRemembered) written.delete(written.keys().next().value!)
  }

  const commit = Effect.fnUntraced(function*<A>(
    operation: string,
    { commands, devices, happened = [], isComplete }: UplinkBatch<A>,
    certainly: UplinkReceipts.UplinkReceipts["certainly"] | undefined
  ) {
    const results = new Map<DeviceId, A>()
    let pending = devices
    /** What belongs to the first transaction alone. */
    let unwritten = { commands, happened }
    let hasStored = false
    /** A failure undoes what a transaction of the caller has stored, and nothing more can be stored in it. */
    const isUndone = Option.isSome(yield* Effect.serviceOption(sql.transactionService))
    /** After the first transaction nothing may fail: whoever repeated the batch would store that part twice. */
    const lasting = <B>(effect: Effect.Effect<B, SqlError.SqlError | StoreError>) =>
      hasStored && !isUndone ? Effect.orDie(untilStored(Effect.mapError(effect, asStoreError(operation)))) : effect
    while (pending.length + unwritten.commands.length + unwritten.happened.length > 0) {
      const needed = [
        ...pending.map(({ deviceId }) => deviceId),
        ...unwritten.happened.flatMap(({ device }) => device === null ? [] : device.deviceId as DeviceId)
      ]
      const remembered = new Map(needed.flatMap((deviceId) => {
        const known = written.get(deviceId)
        return known === undefined ? [] : [[deviceId, known] as const]
      }))
      const unknown = needed.filter((deviceId) => !remembered.has(deviceId))
      const found = unknown.length === 0 ? new Map<string, Known>() : yield* lasting(read(unknown))
      const computed: Array<Computed<A>> = []
      const again: Array<DeviceCommit<A>> = []
      for (const device of pending) {
        const { deviceId } = device
        const known = remembered.get(deviceId) ?? found.get(deviceId)
        if (known === undefined) continue
        const before = known.shadow
        const [result, after, facts] = device.update(before)
        // A write shows whether the shadow is still as it is remembered; without one, it must be read.
        if (remembered.has(deviceId) && after === before) {
          written.delete(deviceId)
          again.push(device)
        } else computed.push({ device, known, before, after, result, facts })
      }
      if (!hasStored && isComplete?.() === false) continue
      // What cannot be made a statement of is refused before anything is stored.
      const statement = yield* Effect.try({
        try: () =>
          write({
            computed,
            commands: unwritten.commands,
            happened: unwritten.happened.flatMap((event) => {
              const deviceId = event.device?.deviceId
              const known = deviceId === undefined ? undefined : remembered.get(deviceId) ?? found.get(deviceId)
              return known === undefined ? [] : [{ event, device: known.device, project: known.project, boundTo: null }]
            })
          }, certainly),
        catch: (cause) => new StoreError({ operation, retryable: false, cause })
      })
      // In a transaction of the caller, what fails is undone alone: the transaction goes on.
      const attempt = (isUndone ? sql.withTransaction(statement) : statement).pipe(
        // A device was deleted after it had been read.
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeedNone)
      )
      const stored = Option.getOrUndefined(yield* lasting(attempt))
      if (stored === undefined) {
        for (const { deviceId } of pending) written.delete(deviceId)
        continue
      }
      unwritten = { commands: [], happened: [] }
      for (const { after, before, device, known, result } of computed) {
        const { deviceId } = device
        if (after !== before && !stored.has(deviceId)) {
          written.delete(deviceId)
          again.push(device)
          continue
        }
        results.set(deviceId, result)
        if (after !== before) remember({ ...known, shadow: after })
      }
      hasStored = results.size > 0 || commands.length > 0
      pending = again
    }
    return devices.map(({ deviceId }) => results.has(deviceId) ? Option.some(results.get(deviceId)!) : Option.none())
  })

  return ShadowWriter.of({
    read: (deviceIds) =>
      Effect.map(read(deviceIds), (found) => new Map([...found].map(([deviceId, { shadow }]) => [deviceId, shadow]))),
    commit: (operation, batch, certainly) =>
      Effect.mapError(commit(operation, batch, certainly), asStoreError(operation))
  })
})
