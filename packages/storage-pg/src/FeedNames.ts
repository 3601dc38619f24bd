/**
 * The names of devices and projects by their numbers in the feed. They never
 * change, so that each is read once (docs/decisions/0130-what-a-reader-of-the-feed-costs.md).
 */
import type { DeviceId, DeviceIdentity, DeviceName, ProductKey, ProjectId } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { FeedRow } from "./FeedRow.ts"
import { wholeNumbers } from "./PgParameters.ts"

/** The names of a device. */
export type DeviceNames = Omit<DeviceIdentity, "validateType">

export interface FeedNames {
  /** By `device.id`. Deleted devices are among them as long as the feed has events of them. */
  readonly devices: ReadonlyMap<number, DeviceNames>
  /** By `project.seq`. */
  readonly projects: ReadonlyMap<number, ProjectId>
}

/** Devices, and projects, that are remembered. When there are more, all are forgotten. */
const capacity = 10_000

interface DeviceRow {
  readonly id: bigint
  readonly device_id: DeviceId
  readonly product_key: ProductKey
  readonly device_name: DeviceName
  readonly project_id: ProjectId
}

interface ProjectRow {
  readonly seq: bigint
  readonly id: ProjectId
}

/** Adds what is read for those numbers in the rows that `known` does not have. */
const complete = <A>(
  known: Map<number, A>,
  rows: ReadonlyArray<FeedRow>,
  numberOf: (row: FeedRow) => number,
  read: (missing: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<readonly [bigint, A]>, SqlError.SqlError>
): Effect.Effect<void, SqlError.SqlError> => {
  const missing = new Set<number>()
  for (const row of rows) {
    const number = numberOf(row)
    if (number !== 0 && !known.has(number)) missing.add(number)
  }
  return missing.size === 0 ? Effect.void : Effect.map(read([...missing]), (rows) => {
    for (const [number, names] of rows) known.set(Number(number), names)
  })
}

/** Makes a function that returns the names in the rows, and perhaps others. Those of what is gone are left out. */
export const make = (sql: PgClient.PgClient) => {
  let devices = new Map<number, DeviceNames>()
  let projects = new Map<number, ProjectId>()

  const readDevices = (numbers: ReadonlyArray<number>) => {
    const named = (table: string) =>
      sql`SELECT id, device_id, product_key, device_name, project_id FROM ${sql.literal(table)}
        WHERE id = ANY(${wholeNumbers(numbers)}::bigint[])`
    return Effect.map(
      sql<DeviceRow>`${named("device")} UNION ALL ${named("former_device")}`,
      (rows) =>
        rows.map((
          { device_id: deviceId, device_name: deviceName, id, product_key: productKey, project_id: projectId }
        ) => [id, { deviceId, productKey, deviceName, projectId }] as const)
    )
  }

  const readProjects = (numbers: ReadonlyArray<number>) =>
    Effect.map(
      sql<ProjectRow>`SELECT seq, id FROM project WHERE seq = ANY(${wholeNumbers(numbers)}::bigint[])`,
      (rows) => rows.map(({ id, seq }) => [seq, id] as const)
    )

  return (rows: ReadonlyArray<FeedRow>): Effect.Effect<FeedNames, SqlError.SqlError> =>
    Effect.suspend(() => {
      if (devices.size > capacity) devices = new Map()
      if (projects.size > capacity) projects = new Map()
      const names: FeedNames = { devices, projects }
      return complete(devices, rows, ([, , , device]) => device, readDevices).pipe(
        Effect.andThen(complete(projects, rows, ([, , project]) => project, readProjects)),
        Effect.as(names)
      )
    })
}
