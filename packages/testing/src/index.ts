/**
 * Device Cloud in tests.
 */
export * as EmbeddedPostgres from "./EmbeddedPostgres.ts"
export type { UnreachableForPostgres } from "./PostgresAccount.ts"
export * as SimulatedDevice from "./SimulatedDevice.ts"
export { TestCloud } from "./TestCloud.ts"
