import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

const conditions = ["device-cloud-source", ...defaultServerConditions]

export default defineConfig({
  resolve: { conditions },
  environments: { __vitest__: { resolve: { conditions } } },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts"],
    globalSetup: ["vitest.postgres.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
