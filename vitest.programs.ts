/**
 * Says in one line which programs are not installed: the tests that need them are
 * left out. `.ci/run` installs them.
 */
import type { TestProject } from "vitest/node"
import { chromiumPath } from "./vitest.browser.ts"
import { program } from "./vitest.installed.ts"

const programs = [
  "mosquitto_pub",
  "nats-server",
  "clickhouse-server",
  "rabbitmq-server",
  "swift-proxy-server",
  "haproxy"
]

export const setup = (project: TestProject) => {
  const missing = programs.filter((name) => !program(name).isInstalled)
  if (chromiumPath === undefined) missing.push("chromium-headless-shell")
  if (missing.length > 0) {
    project.vitest.logger.warn(`The tests are left out that need ${missing.join(", ")}: not installed here.`)
  }
}
