/**
 * The PostgreSQL that the server starts for itself when it is given none.
 */
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StoragePg from "@device-cloud/storage-pg"
import { Effect } from "effect"
import { join } from "node:path"
import { explain } from "./Explanation.ts"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"

/** Connections for the database itself and for whoever looks at it. */
const spareConnections = 20

/** Runs it under `DATA_DIR/postgres`, with connections for all workers, until the scope closes. Returns its URL. */
export const make = ({ dataDir, databaseConnections, workers }: ServerConfig) =>
  EmbeddedPostgres.make({
    directory: join(dataDir, "postgres"),
    connections: Math.max(100, workers * (databaseConnections + StoragePg.otherConnections) + spareConnections)
  }).pipe(
    Effect.map(({ url }) => url),
    Effect.mapError((error) =>
      new InvalidConfig({
        message: `DATA_DIR, or DATABASE_URL or STORAGE=memory in its place: ${explain(error)}`
      })
    )
  )
