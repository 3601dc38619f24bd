/**
 * The arguments of `npm run capacity`.
 */
import { type Fleet, type Machines, memoryForConnections } from "./Model.ts"

/** An argument that cannot be used. */
export class InvalidArgument extends Error {}

const seconds: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3600, day: 86_400 }

const number = (name: string, text: string, least: number, most: number): number => {
  const read = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (read >= least && read <= most) return read
  throw new InvalidArgument(`--${name}: expected a number from ${least} to ${most}, not ${text}`)
}

/** Reads `2/min`: so many in a second, a minute, an hour or a day. */
const rate = (name: string, text: string): number => {
  const [, count, unit = ""] = /^(\d+(?:\.\d+)?)\/(s|min|h|day)$/.exec(text) ?? []
  if (count !== undefined) return Number(count) / seconds[unit]!
  throw new InvalidArgument(`--${name}: expected a rate such as 2/min, of /s, /min, /h or /day, not ${text}`)
}

/** Every argument: its default, and what it means. */
export const settings = {
  devices: ["", "devices in the fleet; needed"],
  reports: ["1/min", "reports of each connected device"],
  values: ["5", "values in a report"],
  commands: ["1/day", "commands for each connected device"],
  connected: ["1", "part of the devices that is connected at once"],
  transport: ["tls", "tls or tcp"],
  "history-days": ["365", "days of history"],
  "feed-days": ["7", "days of events"],
  "node-cores": ["8", "cores of a node"],
  "node-gib": ["16", "memory of a node, GiB"],
  "node-connections": ["100000", "connections of a node"],
  "database-cores": ["32", "cores of a PostgreSQL"],
  "database-tb": ["8", "disk of a PostgreSQL, TB"],
  "database-mbps": ["500", "what its disk writes, MB a second"],
  use: ["0.5", "part of each resource that is used at most"]
} as const satisfies Readonly<Record<string, readonly [byDefault: string, meaning: string]>>

type Name = keyof typeof settings

const isName = (name: string): name is Name => Object.hasOwn(settings, name)

/** Reads arguments such as `--devices 10000000 --reports 2/min`. Throws `InvalidArgument`. */
export const read = (args: ReadonlyArray<string>): { readonly fleet: Fleet; readonly machines: Machines } => {
  const given = new Map<Name, string>()
  for (let i = 0; i < args.length; i += 2) {
    const name = args[i]!.replace(/^--/, "")
    if (!args[i]!.startsWith("--") || !isName(name)) {
      throw new InvalidArgument(
        `${args[i]}: expected one of ${Object.keys(settings).map((each) => `--${each}`).join(", ")}`
      )
    }
    const text = args[i + 1]
    if (text === undefined) throw new InvalidArgument(`--${name}: expected a value behind it`)
    given.set(name, text)
  }
  const text = (name: Name): string => given.get(name) ?? settings[name][0]
  if (!given.has("devices")) throw new InvalidArgument("--devices: expected how many devices there are")
  const transport = text("transport")
  if (transport !== "tls" && transport !== "tcp") {
    throw new InvalidArgument(`--transport: expected tls or tcp, not ${transport}`)
  }
  const machines: Machines = {
    nodeCores: number("node-cores", text("node-cores"), 1, 1024),
    nodeGiB: number("node-gib", text("node-gib"), 1, 65_536),
    nodeConnections: number("node-connections", text("node-connections"), 1, 1e7),
    databaseCores: number("database-cores", text("database-cores"), 1, 1024),
    databaseTB: number("database-tb", text("database-tb"), 0.01, 10_000),
    databaseMBps: number("database-mbps", text("database-mbps"), 1, 1e6),
    use: number("use", text("use"), 0.05, 1)
  }
  if (memoryForConnections(machines) <= 0) {
    throw new InvalidArgument("--node-gib: expected more, for its part that is used has no room but for the processes")
  }
  return {
    fleet: {
      devices: number("devices", text("devices"), 1, 1e12),
      connected: number("connected", text("connected"), 0.000001, 1),
      reports: rate("reports", text("reports")),
      values: number("values", text("values"), 1, 200),
      commands: rate("commands", text("commands")),
      tls: transport === "tls",
      historyDays: number("history-days", text("history-days"), 0, 3650),
      feedDays: number("feed-days", text("feed-days"), 0, 3650)
    },
    machines
  }
}
