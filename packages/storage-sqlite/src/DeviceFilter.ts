/**
 * The conditions by which devices are found, in lists and in groups.
 */
import type { DeviceFilter, ProjectId } from "@device-cloud/core"
import type { Value } from "./Sqlite.ts"

/** A condition on the rows of `device`, with what stands for its `?`. */
export interface Condition {
  readonly where: string
  readonly values: ReadonlyArray<Value>
}

/** The condition that a device of the project matches all fields of the filter. */
export const matches = (projectId: ProjectId, filter: DeviceFilter): Condition => {
  const { batchId, before, enabled, groupId, keyword, productKey, reported = {}, status, tags = {} } = filter
  const parts: ReadonlyArray<readonly [string, ...Array<Value>]> = [
    ["device.project_id = ?", projectId],
    ...productKey === undefined ? [] : [["device.product_key = ?", productKey] as const],
    ...batchId === undefined
      ? []
      // 0: the device is in no batch. The index of batches leaves these out.
      : [["device.batch_id = ?", batchId] as const, ...batchId === 0 ? [] : [["device.batch_id <> 0"] as const]],
    ...enabled === undefined ? [] : [["device.enabled = ?", enabled] as const],
    ...status === undefined ? [] : [["device.status = ?", status] as const],
    ...before === undefined ? [] : [["device.id < ?", before] as const],
    ...Object.entries(tags).map(([key, value]) =>
      ["EXISTS (SELECT 1 FROM json_each(device.tags) WHERE key = ? AND value = ?)", key, value] as const
    ),
    ...keyword === undefined ? [] : [beginsWith(keyword)],
    ...Object.entries(reported).map(([property, value]) => hasReported(property, JSON.stringify(value))),
    ...groupId === undefined
      ? []
      : [["device.device_id IN (SELECT device_id FROM device_group_member WHERE group_id = ?)", groupId] as const]
  ]
  return {
    where: parts.map(([condition]) => condition).join(" AND "),
    values: parts.flatMap(([, ...values]) => values)
  }
}

/** Compares the text of values, which is as `JSON.stringify` writes it. */
const hasReported = (property: string, value: string) =>
  [
    `EXISTS (SELECT 1 FROM shadow, json_each(shadow.reported) AS property
      WHERE shadow.device_id = device.device_id AND property.key = ? AND property.value -> '$.value' = ?)`,
    property,
    value
  ] as const

/** Comes after every other character, also in UTF-8. */
const lastCharacter = "\u{10ffff}"

/** Ranges, because indexes can follow them. */
const beginsWith = (keyword: string) => {
  const end = keyword + lastCharacter
  return [
    `(device.device_name >= ? AND device.device_name <= ? OR
      device.nickname <> '' AND device.nickname >= ? AND device.nickname <= ?)`,
    keyword,
    end,
    keyword,
    end
  ] as const
}
