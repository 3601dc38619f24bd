/**
 * All migrations, in their order.
 */
import type { Migration } from "./Migrator.ts"
import cloud from "./migrations/0001_cloud.ts"

export const migrations: ReadonlyArray<Migration> = [
  { number: 1, name: "cloud", sql: cloud }
]
