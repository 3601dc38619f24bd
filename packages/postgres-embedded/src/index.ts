/**
 * A real PostgreSQL that comes with npm, on a directory of your choice.
 */
export * as EmbeddedPostgres from "./EmbeddedPostgres.ts"
export type { UnreachableForPostgres } from "./PostgresAccount.ts"
