/**
 * `npm run capacity -- --devices 10000000 --reports 2/min`: prints what a fleet
 * needs by the measured figures (docs/operations/scale.md).
 */
import { InvalidArgument, read, settings } from "./capacity/Arguments.ts"
import { figures } from "./capacity/Figures.ts"
import { type Need, plan } from "./capacity/Model.ts"

const grouped = (number: number): string => number.toLocaleString("en-US", { maximumSignificantDigits: 3 })

const bytes = (number: number): string => {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"]
  const unit = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, number)) / 3)))
  return `${grouped(number / 1000 ** unit)} ${units[unit]}`
}

const time = (seconds: number): string =>
  seconds < 120
    ? `${grouped(seconds)} s`
    : seconds < 7200
    ? `${grouped(seconds / 60)} min`
    : `${grouped(seconds / 3600)} h`

const needs = (all: ReadonlyArray<Need>): string =>
  all.map(({ resource, units }) => `${resource} ${grouped(units)}`).join(", ")

const usage = (): string =>
  Object.entries(settings).map(([name, [byDefault, meaning]]) =>
    `  --${name.padEnd(18)}${meaning}${byDefault === "" ? "" : ` (${byDefault})`}\n`
  ).join("")

try {
  const { fleet, machines } = read(process.argv.slice(2))
  const needed = plan(fleet, machines)
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["reports a second", grouped(needed.reportsPerSecond)],
    ["commands a second", grouped(needed.commandsPerSecond)],
    ["connections", grouped(needed.connections)],
    ["cells", `${grouped(needed.cells)}, bound by ${needed.cellsBoundBy.resource} (${needs(needed.cellNeeds)})`],
    [
      "nodes",
      `${grouped(needed.nodes)}, bound by ${needed.nodesBoundBy.resource} (${
        needs(needed.nodeNeeds)
      }), one more in each cell`
    ],
    ["busy cores of nodes", grouped(needed.serverCores)],
    ["memory of connections", bytes(needed.serverBytes)],
    ["busy cores of PostgreSQL", grouped(needed.databaseCores)],
    ["written by PostgreSQL", `${bytes(needed.databaseWrites)} a second`],
    ["devices", bytes(needed.deviceBytes)],
    ["history", `${bytes(needed.historyBytes)} for ${grouped(fleet.historyDays)} days`],
    ["events", `${bytes(needed.feedBytes)} for ${grouped(fleet.feedDays)} days`],
    ["all connected again", `${time(needed.reconnectSeconds)} at least, bound by ${needed.reconnectBoundBy}`]
  ]
  process.stdout.write(`${grouped(fleet.devices)} devices\n\n`)
  for (const [name, text] of rows) process.stdout.write(`${name.padEnd(26)}${text}\n`)
  process.stdout.write("\nfrom these figures:\n")
  for (const [name, { source, value }] of Object.entries(figures)) {
    process.stdout.write(`  ${name.padEnd(24)}${String(value).padEnd(8)}${source}\n`)
  }
} catch (error) {
  if (!(error instanceof InvalidArgument)) throw error
  process.stderr.write(`${error.message}\n\nnpm run capacity -- --devices 10000000 --reports 2/min\n${usage()}`)
  process.exitCode = 2
}
