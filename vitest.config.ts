import { existsSync, statfsSync } from "node:fs"
import { availableParallelism } from "node:os"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

// Vitest reports failed tests with Map.groupBy, which Node.js 20 lacks.
if (!("groupBy" in Map)) {
  Object.assign(Map, {
    groupBy: <K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, Array<T>> => {
      const groups = new Map<K, Array<T>>()
      for (const item of items) groups.set(keyOf(item), [...groups.get(keyOf(item)) ?? [], item])
      return groups
    }
  })
}

/** Files in memory, where the system has such. */
const memory = "/dev/shm"

// Databases, and what servers store: to make a database on a disk takes seven times the processor time.
// Each of some hundred databases takes 6 MB.
if (existsSync(memory)) {
  const { bavail, bsize } = statfsSync(memory)
  if (bavail * bsize > 6 * 1024 ** 3) process.env["TMPDIR"] = memory
}

const conditions = ["device-cloud-source", ...defaultServerConditions]

/** Some of these wait for servers, some compute: beside each other they take the time of one. */
const longest = [
  "fuzz/operations-on-postgres",
  "server/test/kills",
  "http/test/specification/specification",
  "console/test/forms",
  "console/test/pages",
  "console/test/contents",
  "console/test/sending",
  "server/test/restarts",
  "simulation/Simulation",
  "fuzz/operations-on-memory",
  "server/test/mqtt-bridge",
  "storage-pg/test/ownership",
  "platform-node/test/IdleCollection",
  "mqtt/test/jobs",
  "server/test/database-killed",
  "storage-pg/test/contracts",
  "mqtt/test/storms",
  "http/test/upgrades",
  "server/test/balancer",
  "server/test/server",
  "console/test/story",
  "server/test/settings",
  "server/test/objects",
  "storage-sqlite/test/contracts",
  "server/test/other-systems",
  "storage-memory/test/contracts",
  "server/test/clock"
]

/** These wait most of their time. */
const waiting = [
  "server/test/subscription-drill",
  "postgres-embedded/test/EmbeddedPostgres",
  "cli/test/commands",
  "cli/test/program",
  "events-nats/test/events-nats",
  "mqtt-bridge/test/rabbitmq",
  "bus-nats/test/bus-nats",
  "testing/test/conformance",
  "mqtt/test/connect-refusals",
  "mqtt/test/certificates",
  "platform-node/test/webhook-pace",
  "server/test/start"
]

/** So many other files follow on each that waits. */
const between = 12

/**
 * Begins with the longest tests, also on a checkout where nothing is known of them: nothing waits for them at the
 * end. Those that wait do so one after the other, beside tests that compute.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const indexIn = (names: ReadonlyArray<string>, { moduleId }: TestSpecification) =>
      names.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
    const place = (file: TestSpecification, i: number) => {
      const early = indexIn(longest, file)
      if (early >= 0) return early - longest.length
      const among = indexIn(waiting, file)
      return among < 0 ? i : among * between
    }
    return sorted.map((file, i) => ({ file, place: place(file, i) })).sort((one, other) => one.place - other.place)
      .map(({ file }) => file)
  }
}

/** `npm test` runs one of so many random cases, `npm run fuzz` all of them. */
const share = 40

export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  environments: { __vitest__: { resolve: { conditions } } },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "benchmarks/test/**/*.test.ts"],
    provide: { share: mode === "fuzz" ? 1 : share },
    globalSetup: ["vitest.postgres.ts", "vitest.programs.ts", "vitest.bundles.ts"],
    // Tests keep no state in modules; to load them anew for each file takes a third of the time.
    isolate: false,
    // With less, the garbage collector takes a tenth of the processor time.
    execArgv: ["--max-semi-space-size=64"],
    // Much of the time is spent on waiting for servers that start and stop.
    maxWorkers: availableParallelism() * 2,
    // Servers, sockets and databases are real: a test that fails once on a busy machine runs again. So each
    // `layer(…)` of tests has a name: one without closes when as many tests have run as it has.
    retry: 1,
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
}))
