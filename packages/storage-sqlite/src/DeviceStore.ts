/**
 * Devices on SQLite.
 */
import {
  type DeviceDetail,
  type DeviceId,
  type DeviceName,
  type DeviceReference,
  type DeviceStatus,
  DeviceStore,
  maxTags,
  type ProjectId,
  type StoredCredentials
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import * as DeviceBatches from "./DeviceBatches.ts"
import { matches } from "./DeviceFilter.ts"
import { hasProduct, insertedDevice, takenNames, unlessTaken } from "./DeviceInsertion.ts"
import * as DeviceRegistration from "./DeviceRegistration.ts"
import { pageOf } from "./Paging.ts"
import {
  deviceDetails,
  type DeviceRow,
  deviceSecretOf,
  identityColumns,
  identityFromRow,
  type IdentityRow
} from "./Rows.ts"
import { previousSecretOf, Secrets } from "./Secrets.ts"
import { Sqlite, type Value } from "./Sqlite.ts"

/** Part of the group that is replaced together: everything about a device goes with it. */
export const layer: Layer.Layer<DeviceStore, never, Sqlite | Secrets> = Layer.effect(
  DeviceStore,
  Effect.gen(function*() {
    return make(yield* Sqlite, yield* Secrets)
  })
)

type CredentialsRow =
  & IdentityRow
  & Pick<DeviceRow, "device_secret" | "previous_secret" | "previous_secret_until" | "enabled">
  & { readonly auth_type: string; readonly node_type: string; readonly uplink_signature: string }

const make = (sql: Sqlite["Service"], secrets: Secrets["Service"]) => {
  const credentials = (row: CredentialsRow): StoredCredentials => ({
    identity: identityFromRow(row),
    deviceSecret: deviceSecretOf(secrets, row),
    previousSecret: previousSecretOf(secrets, row, ["device", row.device_id]),
    enabled: row.enabled === 1,
    authType: row.auth_type as StoredCredentials["authType"],
    nodeType: row.node_type as StoredCredentials["nodeType"],
    uplinkSignature: row.uplink_signature as StoredCredentials["uplinkSignature"]
  })

  const detail = (row: DeviceRow | undefined): Option.Option<DeviceDetail> =>
    row === undefined ? Option.none() : Option.fromUndefinedOr(deviceDetails(sql, secrets, [row])[0])

  const find = (projectId: ProjectId, reference: DeviceReference): DeviceRow | undefined =>
    "deviceId" in reference
      ? sql.get("SELECT * FROM device WHERE device_id = ? AND project_id = ?", [reference.deviceId, projectId])
      : sql.get("SELECT * FROM device WHERE product_key = ? AND device_name = ? AND project_id = ?", [
        reference.productKey,
        reference.deviceName,
        projectId
      ])

  /** Changes a row, if there is one, and returns the device after the change. */
  const update = (assignments: string, values: ReadonlyArray<Value>, projectId: ProjectId, deviceId: DeviceId) =>
    detail(
      sql.get<DeviceRow>(`UPDATE device SET ${assignments} WHERE device_id = ? AND project_id = ? RETURNING *`, [
        ...values,
        deviceId,
        projectId
      ])
    )

  return DeviceStore.of({
    ...DeviceBatches.make(sql, secrets),
    ...DeviceRegistration.make(sql, secrets),
    insertMany: (projectId, productKey, drafts) =>
      sql.write("DeviceStore.insertMany", () => {
        if (!hasProduct(sql, projectId, productKey)) return Option.none()
        return takenNames(sql, productKey, drafts) ??
          Option.some(drafts.map((draft) => insertedDevice(sql, secrets, { projectId, productKey }, draft, null)))
      }).pipe(unlessTaken),
    get: (projectId, reference) => sql.read("DeviceStore.get", () => detail(find(projectId, reference))),
    credentials: (productKey, deviceName) =>
      sql.read("DeviceStore.credentials", () =>
        Option.map(
          Option.fromUndefinedOr(
            sql.get<CredentialsRow>(
              `SELECT ${identityColumns}, device.device_secret, device.previous_secret, device.previous_secret_until,
                device.enabled, product.auth_type, product.node_type, product.uplink_signature
              FROM device JOIN product USING (product_key) WHERE device.product_key = ? AND device.device_name = ?`,
              [productKey, deviceName]
            )
          ),
          credentials
        )),
    count: (projectId) =>
      sql.read("DeviceStore.count", () => {
        const counts = { online: 0, offline: 0, unactive: 0 }
        const found = sql.all<{ readonly status: DeviceStatus; readonly devices: number }>(
          "SELECT status, count(*) AS devices FROM device WHERE project_id = ? GROUP BY status",
          [projectId]
        )
        for (const { devices, status } of found) counts[status] = devices
        const disabled = sql.get<{ readonly devices: number }>(
          "SELECT count(*) AS devices FROM device WHERE project_id = ? AND NOT enabled",
          [projectId]
        )
        return { ...counts, disabled: disabled!.devices }
      }),
    list: (projectId, filter, page) =>
      sql.read("DeviceStore.list", () => {
        const condition = matches(projectId, filter)
        const { items, total } = pageOf<DeviceRow>(sql, { table: "device", ...condition, order: "id DESC", page })
        return { items: deviceDetails(sql, secrets, items), total }
      }),
    ofProduct: (productKey, { after, limit }) =>
      sql.read(
        "DeviceStore.ofProduct",
        () =>
          sql.all<Pick<DeviceRow, "id" | "device_id" | "device_name" | "created_at">>(
            `SELECT id, device_id, device_name, created_at FROM device
            WHERE product_key = ? AND id > ? ORDER BY id LIMIT ?`,
            [productKey, after ?? 0, limit]
          ).map((row) => ({
            id: row.id,
            deviceId: row.device_id as DeviceId,
            deviceName: row.device_name as DeviceName,
            createdAt: row.created_at
          }))
      ),
    update: (projectId, deviceId, { bound, diagnosisEnabled, enabled, nickname, updatedAt }) =>
      sql.write("DeviceStore.update", () =>
        update(
          `enabled = coalesce(?, enabled), bound = coalesce(?, bound), nickname = coalesce(?, nickname),
            diagnosis_enabled = coalesce(?, diagnosis_enabled), updated_at = ?`,
          [enabled ?? null, bound ?? null, nickname ?? null, diagnosisEnabled ?? null, updatedAt],
          projectId,
          deviceId
        )),
    rotateSecret: (projectId, deviceId, { at, previousUntil, secret }) =>
      sql.write("DeviceStore.rotateSecret", () => {
        const device = find(projectId, { deviceId })
        if (device === undefined) return Option.none()
        const seal = (text: string, column: string) => secrets.seal(text, ["device", deviceId, column])
        return update(
          "device_secret = ?, previous_secret = ?, previous_secret_until = ?, updated_at = ?",
          [
            seal(secret, "device_secret"),
            previousUntil === null ? null : seal(deviceSecretOf(secrets, device), "previous_secret"),
            previousUntil,
            at
          ],
          projectId,
          deviceId
        )
      }),
    changeTags: (deviceId, { remove, set }) =>
      sql.write("DeviceStore.changeTags", () => {
        const device = sql.get<Pick<DeviceRow, "tags">>("SELECT tags FROM device WHERE device_id = ?", [deviceId])
        if (device === undefined) return "no-device"
        const before: Readonly<Record<string, string>> = JSON.parse(device.tags)
        const kept = Object.entries(before).filter(([key]) => remove !== "all" && !remove.includes(key))
        const tags = { ...Object.fromEntries(kept), ...set }
        if (Object.keys(tags).length > maxTags) return "full"
        sql.run("UPDATE device SET tags = ? WHERE device_id = ?", [JSON.stringify(tags), deviceId])
        return tags
      }),
    remove: (projectId, deviceId) =>
      sql.write("DeviceStore.remove", () => {
        const removed = detail(find(projectId, { deviceId }))
        if (Option.isSome(removed)) sql.run("DELETE FROM device WHERE device_id = ?", [deviceId])
        return removed
      })
  })
}
