import { assert, it } from "@effect/vitest"
import { InvalidArgument, read } from "../src/capacity/Arguments.ts"
import { plan } from "../src/capacity/Model.ts"

const planOf = (...args: ReadonlyArray<string>) => {
  const { fleet, machines } = read(["--devices", "1000000", ...args])
  return plan(fleet, machines)
}

it("reports and commands are counted by the second, of those that are connected", () => {
  const { commandsPerSecond, connections, reportsPerSecond } = planOf(
    "--connected",
    "0.5",
    "--reports",
    "6/min",
    "--commands",
    "36/h"
  )
  assert.deepStrictEqual([connections, reportsPerSecond, commandsPerSecond], [500_000, 50_000, 5000])
})

it("twice the devices need twice of everything that is not rounded", () => {
  const once = planOf()
  const twice = planOf("--devices", "2000000")
  for (
    const name of [
      "serverCores",
      "serverBytes",
      "databaseCores",
      "databaseWrites",
      "historyBytes",
      "feedBytes"
    ] as const
  ) {
    assert.approximately(twice[name] / once[name], 2, 1e-9, name)
  }
})

it("what needs most decides", () => {
  assert.strictEqual(planOf("--reports", "1/h").nodesBoundBy.resource, "connections")
  assert.strictEqual(planOf("--reports", "1/h", "--node-gib", "5").nodesBoundBy.resource, "memory")
  assert.strictEqual(planOf("--reports", "1/s").nodesBoundBy.resource, "cores")
  assert.strictEqual(planOf("--history-days", "3650").cellsBoundBy.resource, "disk")
  assert.strictEqual(planOf("--history-days", "0", "--feed-days", "0").cellsBoundBy.resource, "writes of PostgreSQL")
})

it("a small fleet has one cell with two nodes", () => {
  const { cells, nodes } = planOf("--devices", "100", "--reports", "1/h")
  assert.deepStrictEqual([cells, nodes], [1, 2])
})

it("history takes bytes for each value and day, and a twelfth more", () => {
  const { historyBytes } = planOf("--devices", "1", "--reports", "1/min", "--values", "10", "--history-days", "12")
  assert.approximately(historyBytes, 1440 * 10 * 13 * 8.4, 1)
})

it("all come back sooner over TCP, and with more nodes", () => {
  assert.isBelow(planOf("--transport", "tcp").reconnectSeconds, planOf().reconnectSeconds)
  assert.isBelow(planOf("--node-connections", "10000").reconnectSeconds, planOf().reconnectSeconds)
})

it.each(
  [
    [[], "--devices: expected how many"],
    [["--devices"], "--devices: expected a value"],
    [["--devices", "many"], "--devices: expected a number"],
    [["--devices", "10", "--reports", "2"], "--reports: expected a rate such as 2/min"],
    [["--devices", "10", "--connected", "2"], "--connected: expected a number from"],
    [["--devices", "10", "--transport", "udp"], "--transport: expected tls or tcp"],
    [["--devices", "10", "--node-gib", "2"], "--node-gib: expected more"],
    [["--fleet", "10"], "--fleet: expected one of --devices"],
    [["devices", "10"], "devices: expected one of --devices"]
  ] as const
)("wrong arguments are named: %j", (args, message) => {
  assert.throws(() => read(args), InvalidArgument, message)
})
