/**
 * Says in one line which programs are not installed: the tests that need them are
 * left out. `.ci/run` installs them.
 */
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { TestProject } from "vitest/node"
import { chromiumPath } from "./vitest.browser.ts"

const programs = [
  "mosquitto_pub",
  "nats-server",
  "clickhouse-server",
  "rabbitmq-server",
  "swift-proxy-server",
  "haproxy"
]

/** Debian has servers among the programs of the system, which are not on every path. */
const path = [...process.env["PATH"]?.split(delimiter) ?? [], "/usr/sbin"]

export const setup = (project: TestProject) => {
  const missing = programs.filter((program) => !path.some((directory) => existsSync(join(directory, program))))
  if (chromiumPath === undefined) missing.push("chromium-headless-shell")
  if (missing.length > 0) {
    project.vitest.logger.warn(`The tests are left out that need ${missing.join(", ")}: not installed here.`)
  }
}
