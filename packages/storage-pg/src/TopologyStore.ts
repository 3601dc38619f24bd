/**
 * Sub-devices of gateways and their add-sessions, on PostgreSQL.
 */
import {
  type AddSession,
  admits,
  type AttachAttempt,
  type Attachment,
  type AttachOutcome,
  claimAfter,
  type DeviceId,
  deviceKey,
  judgeAttempt,
  maxSubDevices,
  type ProductKey,
  type ProjectId,
  type TopologyClaim,
  TopologyStore
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { identityColumns, identityFromRow, type IdentityRow } from "./DeviceRow.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant, instants, texts } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to devices in the same database. */
export const layer: Layer.Layer<TopologyStore, never, PgClient.PgClient> = Layer.effect(
  TopologyStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

type AttachmentRow =
  & IdentityRow
  & { readonly [Column in keyof IdentityRow as `gateway_${Column}`]: IdentityRow[Column] }

const attachmentFromRow = (row: AttachmentRow): Attachment => ({
  subDevice: identityFromRow(row),
  gateway: identityFromRow({
    device_id: row.gateway_device_id,
    project_id: row.gateway_project_id,
    product_key: row.gateway_product_key,
    device_name: row.gateway_device_name,
    validate_type: row.gateway_validate_type
  })
})

/** The select list of {@link AttachmentRow}. */
const attachmentColumns = `${identityColumns}, gateway.device_id AS gateway_device_id,
  gateway.project_id AS gateway_project_id, gateway.product_key AS gateway_product_key,
  gateway.device_name AS gateway_device_name, gateway_product.validate_type AS gateway_validate_type`

/** Joins the tables of {@link attachmentColumns} to `sub_device`. */
const attachmentTables = `JOIN device ON device.device_id = sub_device.device_id
  JOIN product ON product.product_key = device.product_key
  JOIN device AS gateway ON gateway.device_id = sub_device.gateway_id
  JOIN product AS gateway_product ON gateway_product.product_key = gateway.product_key`

interface SessionRow {
  readonly session_id: string
  readonly project_id: string
  readonly gateway_id: string
  readonly product_keys: ReadonlyArray<string>
  readonly started_at: Date
  readonly ends_at: Date
  readonly ended_at: Date | null
}

const sessionFromRow = (row: SessionRow): AddSession => ({
  sessionId: row.session_id,
  projectId: row.project_id as ProjectId,
  gatewayId: row.gateway_id as DeviceId,
  productKeys: row.product_keys as ReadonlyArray<ProductKey>,
  startedAt: row.started_at.getTime(),
  endsAt: row.ends_at.getTime()
})

interface ClaimRow {
  readonly device_id: string
  readonly gateway_id: string
  readonly state: string
  readonly proved_at: Date
  readonly changed_at: Date
}

const claimFromRow = (row: ClaimRow): TopologyClaim => ({
  gatewayId: row.gateway_id as DeviceId,
  state: row.state as TopologyClaim["state"],
  provedAt: row.proved_at.getTime(),
  changedAt: row.changed_at.getTime()
})

const make = (sql: PgClient.PgClient) => {
  const columns = sql.literal(attachmentColumns)
  const tables = sql.literal(attachmentTables)

  const attachmentsWhere = (which: Statement.Fragment) =>
    Effect.map(
      sql<AttachmentRow>`SELECT ${columns} FROM sub_device ${tables} WHERE ${which} ORDER BY sub_device.position`,
      (rows) => rows.map(attachmentFromRow)
    )

  /** What the attempts are judged by, read under the locks of the devices. */
  const attemptsOf = Effect.fnUntraced(function*({ added, by, gatewayId, locked, moved }: {
    readonly by: AttachAttempt["by"]
    readonly gatewayId: DeviceId
    readonly added: ReadonlyArray<DeviceId>
    readonly locked: ReadonlyArray<{ readonly device_id: string; readonly product_key: string }>
    readonly moved: ReadonlyArray<Attachment>
  }) {
    const rows = yield* sql<ClaimRow>`SELECT * FROM topology_claim WHERE device_id = ANY(${texts(added)})`
    const claims = new Map(rows.map((row) => [row.device_id, claimFromRow(row)]))
    const [open] = yield* sql<SessionRow>`SELECT * FROM add_session
      WHERE gateway_id = ${gatewayId} AND ended_at IS NULL`
    const productKeys = new Map(locked.map((row) => [row.device_id, row.product_key as ProductKey]))
    const foreign = new Set(moved.map(({ subDevice }) => subDevice.deviceId))
    return added.map((subDeviceId): AttachAttempt => ({
      by,
      gatewayId,
      subDeviceId,
      isForeign: foreign.has(subDeviceId),
      isInvited: open !== undefined && admits(sessionFromRow(open), productKeys.get(subDeviceId)!),
      claim: claims.get(subDeviceId)
    }))
  })

  const attach = Effect.fnUntraced(function*(
    { at, by, gatewayId, subDeviceIds }: Parameters<TopologyStore["Service"]["attach"]>[0]
  ): Effect.fn.Return<AttachOutcome, SqlError.SqlError> {
    // Locks in one order for all, so that calls about the same device take turns.
    const involved = [...new Set([gatewayId, ...subDeviceIds])]
    const locked = yield* sql<{ readonly device_id: string; readonly product_key: string }>`
      SELECT device_id, product_key FROM device WHERE device_id = ANY(${texts(involved)})
      ORDER BY device_id FOR NO KEY UPDATE`
    if (locked.length < involved.length) return { _tag: "Gone" }
    const known = yield* attachmentsWhere(sql`sub_device.device_id = ANY(${texts(subDeviceIds)})`)
    const moved = known.filter(({ gateway }) => gateway.deviceId !== gatewayId)
    const here = new Set(
      known.flatMap(({ gateway, subDevice }) => gateway.deviceId === gatewayId ? [subDevice.deviceId] : [])
    )
    const added = [...new Set(subDeviceIds)].filter((id) => !here.has(id))
    if (added.length === 0) return { _tag: "Attached", added, moved: [] }
    const attempts = yield* attemptsOf({ by, gatewayId, added, locked, moved })
    for (const attempt of attempts) {
      const verdict = judgeAttempt(attempt)
      if (verdict === "accepted") continue
      return { _tag: verdict === "spent" ? "Spent" : "OtherGateway", deviceId: attempt.subDeviceId }
    }
    const [{ count }] = (yield* sql<{ readonly count: number }>`
      SELECT count(*)::int AS count FROM sub_device WHERE gateway_id = ${gatewayId}`) as [{ readonly count: number }]
    if (count + added.length > maxSubDevices) return { _tag: "Full" }
    yield* sql`DELETE FROM sub_device WHERE device_id = ANY(${texts(added)})`
    yield* sql`INSERT INTO sub_device (device_id, gateway_id, attached_at)
      SELECT device_id, ${gatewayId}, ${instant(at)}
      FROM unnest(${texts(added)}) WITH ORDINALITY AS new (device_id, place) ORDER BY place`
    const claims = attempts.map((attempt) => claimAfter(attempt, at))
    yield* sql`INSERT INTO topology_claim (device_id, gateway_id, state, proved_at, changed_at)
      SELECT device_id, ${gatewayId}, 'held', proved_at, ${instant(at)}
      FROM unnest(${texts(added)}, ${instants(claims.map(({ provedAt }) => provedAt))}) AS new (device_id, proved_at)
      ON CONFLICT (device_id) DO UPDATE SET gateway_id = excluded.gateway_id, state = excluded.state,
        proved_at = excluded.proved_at, changed_at = excluded.changed_at`
    yield* sql`INSERT INTO add_session_member (session_id, device_id)
      SELECT add_session.session_id, device.device_id
      FROM add_session, unnest(${texts(added)}) WITH ORDINALITY AS new (device_id, place)
      JOIN device USING (device_id)
      WHERE add_session.gateway_id = ${gatewayId} AND add_session.ended_at IS NULL
        AND (cardinality(product_keys) = 0 OR device.product_key = ANY(product_keys))
      ORDER BY place
      ON CONFLICT DO NOTHING`
    return { _tag: "Attached", added, moved }
  })

  return TopologyStore.of({
    attach: (options) =>
      attach(options).pipe(
        sql.withTransaction,
        Effect.mapError(storeError("TopologyStore.attach"))
      ),
    detach: ({ at, gatewayId, state, subDeviceIds }) =>
      sql<AttachmentRow>`
        WITH involved AS (
          -- Whoever removes some of them comes first or waits.
          SELECT device_id FROM device WHERE device_id = ANY(${texts(subDeviceIds)}) ORDER BY device_id FOR KEY SHARE
        ), detached AS (
          DELETE FROM sub_device WHERE device_id = ANY(${texts(subDeviceIds)})
            AND (SELECT count(*) FROM involved) >= 0
            AND ${gatewayId === undefined ? sql`true` : sql`gateway_id = ${gatewayId}`}
          RETURNING *
        ), claimed AS (
          INSERT INTO topology_claim (device_id, gateway_id, state, proved_at, changed_at)
          SELECT device_id, gateway_id, ${state}, to_timestamp(0), ${instant(at)} FROM detached
          ON CONFLICT (device_id) DO UPDATE SET gateway_id = excluded.gateway_id, state = excluded.state,
            changed_at = excluded.changed_at
        )
        SELECT ${columns} FROM detached AS sub_device ${tables}`.pipe(
        Effect.map((rows) => rows.map(attachmentFromRow)),
        Effect.mapError(storeError("TopologyStore.detach"))
      ),
    subDevices: (gatewayId) =>
      attachmentsWhere(sql`sub_device.gateway_id = ${gatewayId}`).pipe(
        Effect.map((attachments) => attachments.map(({ subDevice }) => subDevice)),
        Effect.mapError(storeError("TopologyStore.subDevices"))
      ),
    amounts: (gatewayIds) =>
      sql<{ readonly gateway_id: string; readonly amount: number }>`
        SELECT gateway_id, count(*)::int AS amount FROM sub_device
        WHERE gateway_id = ANY(${texts(gatewayIds)}) GROUP BY gateway_id`.pipe(
        Effect.map((rows) => new Map(rows.map((row) => [row.gateway_id as DeviceId, row.amount]))),
        Effect.mapError(storeError("TopologyStore.amounts"))
      ),
    attachments: (names) =>
      sql<AttachmentRow>`
        SELECT ${columns} FROM unnest(${texts(names.map(({ productKey }) => productKey))}, ${
        texts(names.map(({ deviceName }) => deviceName))
      }) AS asked (product_key, device_name)
        JOIN device AS named ON named.product_key = asked.product_key AND named.device_name = asked.device_name
        JOIN sub_device ON sub_device.device_id = named.device_id
        ${tables}`.pipe(
        Effect.map((rows) => {
          const found = new Map(rows.map((row) => {
            const attachment = attachmentFromRow(row)
            return [deviceKey(attachment.subDevice), attachment]
          }))
          return names.map((name) => Option.fromUndefinedOr(found.get(deviceKey(name))))
        }),
        Effect.mapError(storeError("TopologyStore.attachments"))
      ),
    attachmentsOf: (subDeviceIds) =>
      subDeviceIds.length === 0
        ? Effect.succeed([])
        : attachmentsWhere(sql`sub_device.device_id = ANY(${texts(subDeviceIds)})`).pipe(
          Effect.mapError(storeError("TopologyStore.attachmentsOf"))
        ),
    openSession: ({ endsAt, gatewayId, productKeys, projectId, sessionId, startedAt }) =>
      Effect.gen(function*() {
        yield* sql`SELECT FROM device WHERE device_id = ${gatewayId} FOR NO KEY UPDATE`
        const [replaced] = yield* sql<SessionRow>`UPDATE add_session SET ended_at = ${instant(startedAt)}
          WHERE gateway_id = ${gatewayId} AND ended_at IS NULL RETURNING *`
        yield* sql`INSERT INTO add_session (session_id, project_id, gateway_id, product_keys, started_at, ends_at)
          VALUES (${sessionId}, ${projectId}, ${gatewayId}, ${texts(productKeys)}, ${instant(startedAt)},
            ${instant(endsAt)})`
        return Option.map(Option.fromUndefinedOr(replaced), sessionFromRow)
      }).pipe(
        sql.withTransaction,
        // The gateway was deleted.
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeedNone),
        Effect.mapError(storeError("TopologyStore.openSession"))
      ),
    session: (gatewayId, sessionId) =>
      Effect.gen(function*() {
        const [row] = yield* sql<SessionRow>`SELECT * FROM add_session
          WHERE session_id = ${sessionId} AND gateway_id = ${gatewayId}`
        if (row === undefined) return Option.none()
        const members = yield* sql<IdentityRow>`SELECT ${sql.literal(identityColumns)} FROM add_session_member
          JOIN device USING (device_id) JOIN product ON product.product_key = device.product_key
          WHERE session_id = ${sessionId} ORDER BY position`
        return Option.some({
          session: sessionFromRow(row),
          isOpen: row.ended_at === null,
          members: members.map(identityFromRow)
        })
      }).pipe(Effect.mapError(storeError("TopologyStore.session"))),
    endSession: (gatewayId, sessionId, at) =>
      sql`UPDATE add_session SET ended_at = ${instant(at)}
        WHERE session_id = ${sessionId} AND gateway_id = ${gatewayId} AND ended_at IS NULL RETURNING session_id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("TopologyStore.endSession"))
      ),
    endDue: ({ limit, now }) =>
      sql<SessionRow>`
        WITH due AS (
          SELECT session_id FROM add_session WHERE ended_at IS NULL AND ends_at <= ${instant(now)}
          ORDER BY ends_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
        )
        UPDATE add_session SET ended_at = ${instant(now)} FROM due
        WHERE add_session.session_id = due.session_id RETURNING add_session.*`.pipe(
        Effect.map((rows) => rows.map(sessionFromRow)),
        Effect.mapError(storeError("TopologyStore.endDue"))
      ),
    openSessions: (gatewayId) =>
      sql<SessionRow>`SELECT * FROM add_session WHERE ended_at IS NULL
        AND ${gatewayId === undefined ? sql`true` : sql`gateway_id = ${gatewayId}`}`.pipe(
        Effect.map((rows) => rows.map(sessionFromRow)),
        Effect.mapError(storeError("TopologyStore.openSessions"))
      ),
    forgetSessions: (endedBefore) =>
      sql`DELETE FROM add_session WHERE ended_at < ${instant(endedBefore)}`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("TopologyStore.forgetSessions"))
      )
  })
}
