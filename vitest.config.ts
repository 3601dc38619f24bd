import { availableParallelism } from "node:os"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

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

export default defineConfig({
  resolve: { conditions },
  environments: { __vitest__: { resolve: { conditions } } },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts"],
    globalSetup: ["vitest.postgres.ts"],
    // Tests keep no state in modules; to load them anew for each file takes a third of the time.
    isolate: false,
    // Much of the time is spent on waiting for servers that start and stop.
    maxWorkers: availableParallelism() * 2,
    // Servers, sockets and databases are real: a test that fails once on a busy machine runs again.
    retry: 1,
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
