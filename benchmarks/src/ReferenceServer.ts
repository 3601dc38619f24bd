/**
 * The reference server as it is shipped, in a process of its own.
 */
import { open } from "node:fs/promises"
import { join } from "node:path"
import { type Program, startProgram } from "./Processes.ts"
import type { CloudAddress } from "./Tenant.ts"

/** The access key of the cloud's owner. */
export const ownerKey = `dck_${"b".repeat(12)}_${"0".repeat(43)}`

export interface ReferenceServerOptions {
  /** Holds its certificate, objects and log. */
  readonly directory: string
  /** Absent: storage in memory. */
  readonly databaseUrl?: string | undefined
  /** More of the environment. */
  readonly env?: Readonly<Record<string, string>>
  readonly nodeOptions?: ReadonlyArray<string>
  /** The built program, without its extension. Default: that of this checkout. */
  readonly program?: string
}

/** Starts a server with its defaults, on any free ports. Its log is `server.log` of the directory. */
export const startReferenceServer = async (
  { databaseUrl, directory, env, nodeOptions = [], program = "../../packages/server/dist/main" }: ReferenceServerOptions
): Promise<Program<CloudAddress>> => {
  const log = await open(join(directory, "server.log"), "a")
  try {
    return await startProgram<CloudAddress>(program, [], {
      env: {
        PATH: process.env["PATH"] ?? "",
        HTTP_PORT: "0",
        MQTT_PORT: "0",
        MQTTS_PORT: "0",
        DATA_DIR: directory,
        ADMIN_KEY: ownerKey,
        SECRETS_KEY: `${"b".repeat(42)}A=`,
        // The victim of webhooks is on this machine.
        WEBHOOK_ALLOW_PRIVATE: "true",
        ...databaseUrl === undefined ? { STORAGE: "memory" } : { DATABASE_URL: databaseUrl },
        ...env
      },
      nodeOptions,
      log: log.fd
    })
  } finally {
    await log.close()
  }
}
