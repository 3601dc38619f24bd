/**
 * Devices by id and by name. The look-ups of many callers share one statement:
 * while one is on its way, the next one collects.
 */
import {
  Batcher,
  type DeviceId,
  deviceKey,
  type DeviceName,
  type ProductKey,
  type StoredCredentials
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Option } from "effect"
import {
  deviceDetailColumns,
  deviceDetailFromRow,
  type DeviceDetailRow,
  type DeviceRow,
  deviceSecretFromRow,
  type DeviceSecretRow,
  identityColumns,
  identityFromRow,
  type IdentityRow,
  previousDeviceSecretFromRow
} from "./DeviceRow.ts"
import type { SealedSecrets } from "./SealedSecrets.ts"
import { eachByIndex, texts } from "./PgParameters.ts"

/** Look-ups that may wait, and look-ups in one statement. */
const capacity = 8192
const maxBatch = 500

/** `byId` finds the device with its product, `byName` what a connecting device is checked against. */
export const make = Effect.fnUntraced(function*(sql: PgClient.PgClient, secrets: SealedSecrets["Service"]) {
  const byId = yield* Batcher.make({
    capacity,
    maxBatch,
    gathers: false,
    commit: (deviceIds: ReadonlyArray<DeviceId>) =>
      Effect.map(
        sql<DeviceDetailRow>`SELECT ${sql.literal(deviceDetailColumns)}
          FROM (SELECT * FROM unnest(${texts(deviceIds)}) ${eachByIndex(sql, deviceIds.length)}) AS asked (device_id)
          JOIN device ON device.device_id = asked.device_id JOIN product ON product.product_key = device.product_key`
          .pipe(Effect.flatMap(secrets.ready)),
        (rows) => {
          const found = new Map(rows.map((row) => [row.device_id, deviceDetailFromRow(secrets, row)]))
          return deviceIds.map((deviceId) => Option.fromUndefinedOr(found.get(deviceId)))
        }
      )
  })

  const byName = yield* Batcher.make({
    capacity,
    maxBatch,
    gathers: false,
    commit: (names: ReadonlyArray<{ readonly productKey: ProductKey; readonly deviceName: DeviceName }>) =>
      Effect.map(
        sql<
          & IdentityRow
          & DeviceSecretRow
          & Pick<DeviceRow, "enabled">
          & { readonly auth_type: string; readonly node_type: string; readonly uplink_signature: string }
        >`
          SELECT ${sql.literal(identityColumns)}, device.device_secret, device.previous_secret,
            device.previous_secret_until, device.sealed_with, device.enabled, product.auth_type,
            product.node_type, product.uplink_signature
          FROM (
            SELECT * FROM unnest(
              ${texts(names.map(({ productKey }) => productKey))},
              ${texts(names.map(({ deviceName }) => deviceName))}
            ) ${eachByIndex(sql, names.length)}
          ) AS asked (product_key, device_name)
          JOIN device ON device.product_key = asked.product_key AND device.device_name = asked.device_name
          JOIN product ON product.product_key = device.product_key`.pipe(Effect.flatMap(secrets.ready)),
        (rows) => {
          const found = new Map(rows.map((row) => {
            const identity = identityFromRow(row)
            const credentials: StoredCredentials = {
              identity,
              deviceSecret: deviceSecretFromRow(secrets, row),
              previousSecret: previousDeviceSecretFromRow(secrets, row),
              enabled: row.enabled,
              authType: row.auth_type as StoredCredentials["authType"],
              nodeType: row.node_type as StoredCredentials["nodeType"],
              uplinkSignature: row.uplink_signature as StoredCredentials["uplinkSignature"]
            }
            return [deviceKey(identity), credentials]
          }))
          return names.map((name) => Option.fromUndefinedOr(found.get(deviceKey(name))))
        }
      )
  })

  return { byId: byId.submit, byName: byName.submit }
})
