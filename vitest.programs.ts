/**
 * Says in one line which programs are not installed: the tests that need them are
 * left out. `.ci/run` installs them.
 */
import { spawnSync } from "node:child_process"
import type { TestProject } from "vitest/node"

const programs = ["mosquitto_pub", "nats-server", "clickhouse-server"]

/** Debian has servers among the programs of the system, which are not on every path. */
const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin` }

export const setup = (project: TestProject) => {
  const missing = programs.filter((program) => spawnSync(program, ["--help"], { env }).error !== undefined)
  if (missing.length > 0) {
    project.vitest.logger.warn(`The tests are left out that need ${missing.join(", ")}: not installed here.`)
  }
}
