/**
 * Devices by id and by name. The look-ups of many callers share one statement:
 * while one is on its way, the next one collects.
 */
import { type DeviceId, deviceKey, type DeviceName, type ProductKey } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Option } from "effect"
import {
  deviceDetailColumns,
  deviceDetailFromRow,
  type DeviceDetailRow,
  identityColumns,
  identityFromRow,
  type IdentityRow
} from "./DeviceRow.ts"
import * as LookUps from "./LookUps.ts"
import { eachByIndex, texts } from "./PgParameters.ts"

/** `byId` finds the device with its product, `byName` what a connecting device is checked against. */
export const make = Effect.fnUntraced(function*(sql: PgClient.PgClient) {
  const byId = yield* LookUps.make((deviceIds: ReadonlyArray<DeviceId>) =>
    Effect.map(
      sql<DeviceDetailRow>`SELECT ${sql.literal(deviceDetailColumns)}
        FROM (SELECT * FROM unnest(${texts(deviceIds)}) ${eachByIndex(sql, deviceIds.length)}) AS asked (device_id)
        JOIN device ON device.device_id = asked.device_id JOIN product ON product.product_key = device.product_key`,
      (rows) => {
        const found = new Map(rows.map((row) => [row.device_id, deviceDetailFromRow(row)]))
        return deviceIds.map((deviceId) => Option.fromUndefinedOr(found.get(deviceId)))
      }
    )
  )

  const byName = yield* LookUps.make((
    names: ReadonlyArray<{ readonly productKey: ProductKey; readonly deviceName: DeviceName }>
  ) =>
    Effect.map(
      sql<IdentityRow & { readonly device_secret: string; readonly enabled: boolean }>`
        SELECT ${sql.literal(identityColumns)}, device.device_secret, device.enabled
        FROM (
          SELECT * FROM unnest(
            ${texts(names.map(({ productKey }) => productKey))},
            ${texts(names.map(({ deviceName }) => deviceName))}
          ) ${eachByIndex(sql, names.length)}
        ) AS asked (product_key, device_name)
        JOIN device ON device.product_key = asked.product_key AND device.device_name = asked.device_name
        JOIN product ON product.product_key = device.product_key`,
      (rows) => {
        const found = new Map(rows.map((row) => {
          const identity = identityFromRow(row)
          return [deviceKey(identity), { identity, deviceSecret: row.device_secret, enabled: row.enabled }]
        }))
        return names.map((name) => Option.fromUndefinedOr(found.get(deviceKey(name))))
      }
    )
  )

  return { byId, byName }
})
