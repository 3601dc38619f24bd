/**
 * How long `npm start` takes until the server can be reached.
 *
 * `start`: the first time, when it makes its database, and later. `restart`: where
 * 1,000,000 devices, 100,000 scenes and 100,000,000 values are stored.
 */
import { insertDevice } from "@device-cloud/testing/contracts"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { createWriteStream } from "node:fs"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { type Part, rounds, type Row, within } from "./Comparison.ts"
import { type Query, withDatabaseIn } from "./Database.ts"
import { withDirectory } from "./Processes.ts"
import { storeDevices } from "./StoredDevices.ts"
import { fill, layer, secretsKey } from "./StoredHistory.ts"
import { storeScenes } from "./StoredScenes.ts"

const limits = { first: 4000, later: 1500, restart: 5000 }
const stored = { devices: 1_000_000, scenes: 100_000 }

const root = fileURLToPath(new URL("../../", import.meta.url))

/** Runs `npm start` on a data directory, and stops it when it can be reached. Returns the milliseconds until then. */
const start = async (directory: string): Promise<number> => {
  const from = performance.now()
  const child = spawn("npm", ["start"], {
    cwd: root,
    env: {
      PATH: process.env["PATH"],
      DATA_DIR: directory,
      SECRETS_KEY: secretsKey,
      HTTP_PORT: "0",
      MQTTS_PORT: "0"
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  const ended = new Promise((resolve) => child.once("exit", resolve))
  child.stderr.pipe(createWriteStream(join(directory, "log")))
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.startsWith(`{"event":"ready"`)) return performance.now() - from
    }
    throw new Error("The server ended before it could be reached")
  } finally {
    child.kill("SIGTERM")
    await ended
  }
}

const limited = (benchmark: string, scenario: string, limit: number, values: ReadonlyArray<number>): Row =>
  within({ benchmark, scenario: `${scenario}, ms`, unit: "ms", limit, values })

const firstAndLater: Part = async () => {
  const [first, later]: [Array<number>, Array<number>] = [[], []]
  for (let round = 0; round < rounds; round++) {
    await withDirectory(async (directory) => {
      first.push(await start(directory))
      later.push(await start(directory))
    })
  }
  return [
    limited("start", "the first", limits.first, first),
    limited("start", "a later one", limits.later, later)
  ]
}

/** Stores devices, scenes and values. */
const fillAll = (url: string, query: Query): Promise<void> =>
  Effect.gen(function*() {
    yield* fill
    const { device } = yield* insertDevice
    yield* Effect.promise(() => storeDevices(query, device.deviceId, stored.devices))
    yield* storeScenes(device, stored.scenes)
  }).pipe(Effect.provide(layer(url)), Effect.runPromise)

const besideMuch: Part = () =>
  withDirectory(async (directory) => {
    const database = join(directory, "postgres")
    await mkdir(database)
    await withDatabaseIn(database, ({ query, url }) => fillAll(url, query))
    // The first start makes the key of the administrator, and a certificate.
    await start(directory)
    const millis: Array<number> = []
    for (let round = 0; round < rounds; round++) millis.push(await start(directory))
    return [limited("restart", "1 M devices, 100,000 scenes, 100 M values", limits.restart, millis)]
  })

export const firstStarts: ReadonlyArray<Part> = [firstAndLater]
export const restart: ReadonlyArray<Part> = [besideMuch]
