/**
 * Sub-devices of gateways and their add-sessions, on SQLite.
 */
import {
  type AddSession,
  admits,
  type AttachAttempt,
  type Attachment,
  type AttachOutcome,
  claimAfter,
  type DeviceId,
  judgeAttempt,
  maxSubDevices,
  type ProductKey,
  type ProjectId,
  type TopologyClaim,
  TopologyStore
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { identityColumns, identityFromRow, type IdentityRow } from "./Rows.ts"
import { Sqlite, type Value } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to devices in the same database. */
export const layer: Layer.Layer<TopologyStore, never, Sqlite> = Layer.effect(
  TopologyStore,
  Effect.map(Sqlite, (sql) => make(sql))
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

const attachments = `SELECT ${identityColumns}, gateway.device_id AS gateway_device_id,
    gateway.project_id AS gateway_project_id, gateway.product_key AS gateway_product_key,
    gateway.device_name AS gateway_device_name, gateway_product.validate_type AS gateway_validate_type
  FROM sub_device JOIN device ON device.device_id = sub_device.device_id
  JOIN product ON product.product_key = device.product_key
  JOIN device AS gateway ON gateway.device_id = sub_device.gateway_id
  JOIN product AS gateway_product ON gateway_product.product_key = gateway.product_key`

interface SessionRow {
  readonly session_id: string
  readonly project_id: string
  readonly gateway_id: string
  readonly product_keys: string
  readonly started_at: number
  readonly ends_at: number
  readonly ended_at: number | null
}

const sessionFromRow = (row: SessionRow): AddSession => ({
  sessionId: row.session_id,
  projectId: row.project_id as ProjectId,
  gatewayId: row.gateway_id as DeviceId,
  productKeys: JSON.parse(row.product_keys) as ReadonlyArray<ProductKey>,
  startedAt: row.started_at,
  endsAt: row.ends_at
})

interface ClaimRow {
  readonly gateway_id: string
  readonly state: TopologyClaim["state"]
  readonly proved_at: number
  readonly changed_at: number
}

const claimFromRow = (row: ClaimRow): TopologyClaim => ({
  gatewayId: row.gateway_id as DeviceId,
  state: row.state,
  provedAt: row.proved_at,
  changedAt: row.changed_at
})

const make = (sql: Sqlite["Service"]) => {
  const attachmentOf = (deviceId: DeviceId): Attachment | undefined => {
    const row = sql.get<AttachmentRow>(`${attachments} WHERE sub_device.device_id = ?`, [deviceId])
    return row === undefined ? undefined : attachmentFromRow(row)
  }

  const sessions = (where: string, ...parameters: ReadonlyArray<Value>) =>
    sql.all<SessionRow>(`SELECT * FROM add_session WHERE ${where}`, parameters)

  const openSession = (gatewayId: DeviceId): AddSession | undefined =>
    sessions("gateway_id = ? AND ended_at IS NULL", gatewayId).map(sessionFromRow)[0]

  const end = (sessionId: string, at: number) =>
    sql.run("UPDATE add_session SET ended_at = ? WHERE session_id = ?", [at, sessionId])

  const claimOf = (deviceId: DeviceId): TopologyClaim | undefined =>
    sql.all<ClaimRow>("SELECT * FROM topology_claim WHERE device_id = ?", [deviceId]).map(claimFromRow)[0]

  const setClaim = (deviceId: DeviceId, { changedAt, gatewayId, provedAt, state }: TopologyClaim) =>
    sql.run(
      `INSERT INTO topology_claim (device_id, gateway_id, state, proved_at, changed_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (device_id) DO UPDATE SET gateway_id = excluded.gateway_id, state = excluded.state,
          proved_at = excluded.proved_at, changed_at = excluded.changed_at`,
      [deviceId, gatewayId, state, provedAt, changedAt]
    )

  const countOf = (gatewayId: DeviceId): number =>
    sql.get<{ readonly count: number }>("SELECT count(*) AS count FROM sub_device WHERE gateway_id = ?", [gatewayId])!
      .count

  const productKeyOf = (deviceId: DeviceId): ProductKey | undefined =>
    sql.get<{ readonly product_key: ProductKey }>("SELECT product_key FROM device WHERE device_id = ?", [deviceId])
      ?.product_key

  const attach = (
    { at, by, gatewayId, subDeviceIds }: Parameters<TopologyStore["Service"]["attach"]>[0]
  ): AttachOutcome => {
    const distinct = [...new Set(subDeviceIds)]
    if ([gatewayId, ...distinct].some((deviceId) => productKeyOf(deviceId) === undefined)) return { _tag: "Gone" }
    const open = openSession(gatewayId)
    const isInvited = (deviceId: DeviceId) => open !== undefined && admits(open, productKeyOf(deviceId)!)
    const added: Array<DeviceId> = []
    const moved: Array<Attachment> = []
    const attempts: Array<AttachAttempt> = []
    for (const subDeviceId of distinct) {
      const known = attachmentOf(subDeviceId)
      if (known?.gateway.deviceId === gatewayId) continue
      added.push(subDeviceId)
      if (known !== undefined) moved.push(known)
      attempts.push({
        by,
        gatewayId,
        subDeviceId,
        isForeign: known !== undefined,
        isInvited: isInvited(subDeviceId),
        claim: claimOf(subDeviceId)
      })
    }
    for (const attempt of attempts) {
      const verdict = judgeAttempt(attempt)
      if (verdict === "accepted") continue
      return { _tag: verdict === "spent" ? "Spent" : "OtherGateway", deviceId: attempt.subDeviceId }
    }
    if (countOf(gatewayId) + added.length > maxSubDevices) return { _tag: "Full" }
    for (const attempt of attempts) {
      const { subDeviceId } = attempt
      setClaim(subDeviceId, claimAfter(attempt, at))
      // Replaced: the latest stands at the end.
      sql.run("INSERT OR REPLACE INTO sub_device (device_id, gateway_id) VALUES (?, ?)", [subDeviceId, gatewayId])
      if (open !== undefined && attempt.isInvited) {
        sql.run("INSERT OR IGNORE INTO add_session_member (session_id, device_id) VALUES (?, ?)", [
          open.sessionId,
          subDeviceId
        ])
      }
    }
    return { _tag: "Attached", added, moved }
  }

  return TopologyStore.of({
    attach: (options) => sql.write("TopologyStore.attach", () => attach(options)),
    detach: ({ at, gatewayId, state, subDeviceIds }) =>
      sql.write("TopologyStore.detach", () =>
        subDeviceIds.flatMap((deviceId) => {
          const known = attachmentOf(deviceId)
          if (known === undefined || (gatewayId !== undefined && known.gateway.deviceId !== gatewayId)) return []
          sql.run("DELETE FROM sub_device WHERE device_id = ?", [deviceId])
          const provedAt = claimOf(deviceId)?.provedAt ?? 0
          setClaim(deviceId, { gatewayId: known.gateway.deviceId, state, provedAt, changedAt: at })
          return [known]
        })),
    subDevices: (gatewayId) =>
      sql.read(
        "TopologyStore.subDevices",
        () =>
          sql.all<AttachmentRow>(`${attachments} WHERE sub_device.gateway_id = ? ORDER BY sub_device.position`, [
            gatewayId
          ])
            .map(identityFromRow)
      ),
    amounts: (gatewayIds) =>
      sql.read("TopologyStore.amounts", () =>
        new Map(
          gatewayIds.map((gatewayId): [DeviceId, number] => [gatewayId, countOf(gatewayId)])
            .filter(([, count]) => count > 0)
        )),
    attachments: (names) =>
      sql.read("TopologyStore.attachments", () =>
        names.map(({ deviceName, productKey }) => {
          const row = sql.get<AttachmentRow>(`${attachments} WHERE device.product_key = ? AND device.device_name = ?`, [
            productKey,
            deviceName
          ])
          return Option.map(Option.fromUndefinedOr(row), attachmentFromRow)
        })),
    attachmentsOf: (subDeviceIds) =>
      sql.read("TopologyStore.attachmentsOf", () => subDeviceIds.flatMap((deviceId) => attachmentOf(deviceId) ?? [])),
    openSession: ({ endsAt, gatewayId, productKeys, projectId, sessionId, startedAt }) =>
      sql.write("TopologyStore.openSession", () => {
        const replaced = openSession(gatewayId)
        if (replaced !== undefined) end(replaced.sessionId, startedAt)
        sql.run(
          `INSERT INTO add_session (session_id, project_id, gateway_id, product_keys, started_at, ends_at)
            SELECT ?, ?, device_id, ?, ?, ? FROM device WHERE device_id = ?`,
          [sessionId, projectId, JSON.stringify(productKeys), startedAt, endsAt, gatewayId]
        )
        return Option.fromUndefinedOr(replaced)
      }),
    session: (gatewayId, sessionId) =>
      sql.read("TopologyStore.session", () => {
        const [row] = sessions("session_id = ? AND gateway_id = ?", sessionId, gatewayId)
        if (row === undefined) return Option.none()
        const members = sql.all<IdentityRow>(
          `SELECT ${identityColumns} FROM add_session_member AS member JOIN device USING (device_id)
            JOIN product ON product.product_key = device.product_key
            WHERE member.session_id = ? ORDER BY member.position`,
          [sessionId]
        )
        return Option.some({
          session: sessionFromRow(row),
          isOpen: row.ended_at === null,
          members: members.map(identityFromRow)
        })
      }),
    endSession: (gatewayId, sessionId, at) =>
      sql.write(
        "TopologyStore.endSession",
        () => openSession(gatewayId)?.sessionId === sessionId && end(sessionId, at) > 0
      ),
    endDue: ({ limit, now }) =>
      sql.write(
        "TopologyStore.endDue",
        () =>
          sessions("ended_at IS NULL AND ends_at <= ? ORDER BY ends_at LIMIT ?", now, limit).map((row) => {
            end(row.session_id, now)
            return sessionFromRow(row)
          })
      ),
    openSessions: (gatewayId) =>
      sql.read("TopologyStore.openSessions", () =>
        (gatewayId === undefined
          ? sessions("ended_at IS NULL")
          : sessions("ended_at IS NULL AND gateway_id = ?", gatewayId)).map(sessionFromRow)),
    forgetSessions: (endedBefore) =>
      sql.write("TopologyStore.forgetSessions", () => {
        sql.run("DELETE FROM add_session WHERE ended_at < ?", [endedBefore])
      })
  })
}
