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

const conditions = ["device-cloud-source", ...defaultServerConditions]

/** Begins with the longest tests, also on a checkout where nothing is known of them: nothing waits for them at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) => moduleId.includes("/fuzz/operations-")
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** `npm test` runs one of so many random cases, `npm run fuzz` all of them. */
const share = 20

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
    // Servers, sockets and databases are real: a test that fails once on a busy machine runs again.
    retry: 1,
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
}))
