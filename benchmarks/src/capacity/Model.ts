/**
 * How many nodes and databases a fleet needs, from what was measured. Everything
 * grows with the work; nothing here knows how the parts hinder each other, so a
 * plan is a beginning, and a test with the own load its end.
 */
import { figures } from "./Figures.ts"

export interface Fleet {
  readonly devices: number
  /** The part of the devices that is connected at once, 0 to 1. */
  readonly connected: number
  /** Reports of each connected device in a second. */
  readonly reports: number
  /** Values in a report. */
  readonly values: number
  /** Commands for each connected device in a second. */
  readonly commands: number
  readonly tls: boolean
  readonly historyDays: number
  readonly feedDays: number
}

/** What the machines are, and how much of them is used at most. */
export interface Machines {
  readonly nodeCores: number
  readonly nodeGiB: number
  readonly databaseCores: number
  readonly databaseTB: number
  /** What the disks of a database write in a second, megabytes. */
  readonly databaseMBps: number
  /** Connections of one node, which has a server process for each core. */
  readonly nodeConnections: number
  /** The part of each resource that is used when nothing is wrong, 0 to 1. */
  readonly use: number
}

export interface Plan {
  readonly reportsPerSecond: number
  readonly commandsPerSecond: number
  readonly connections: number
  readonly nodes: number
  /** The resource that decides how many nodes there are, and how many it alone would need. */
  readonly nodesBoundBy: Need
  readonly nodeNeeds: ReadonlyArray<Need>
  /** Cores and bytes of memory of all nodes that are busy. */
  readonly serverCores: number
  readonly serverBytes: number
  readonly cells: number
  readonly cellsBoundBy: Need
  readonly cellNeeds: ReadonlyArray<Need>
  readonly databaseCores: number
  /** Bytes that all databases write in a second. */
  readonly databaseWrites: number
  readonly deviceBytes: number
  readonly historyBytes: number
  readonly feedBytes: number
  /** How long it takes at least until all have connected again after an outage, seconds, and what it waits for. */
  readonly reconnectSeconds: number
  readonly reconnectBoundBy: "nodes" | "databases"
}

/** How many units a resource alone would need. */
export interface Need {
  readonly resource: string
  readonly units: number
}

const micros = 1e-6
/** Figures about reports are for five values. */
const measuredValues = 5
/** History is kept in twelve parts that go as a whole. */
const keptLonger = 13 / 12
const secondsOfDay = 86_400
const gibibyte = 2 ** 30
const terabyte = 1e12
const megabyte = 1e6

const value = (name: keyof typeof figures): number => figures[name].value

const bindingOf = (needs: ReadonlyArray<Need>): Need =>
  needs.reduce((most, need) => need.units > most.units ? need : most)

/** Bytes of a node that connections may take: the rest is for its processes, one for each core. */
export const memoryForConnections = ({ nodeCores, nodeGiB, use }: Machines): number =>
  nodeGiB * gibibyte * use - nodeCores * value("processBytes")

/** Plans nodes, databases and disks. A cell is one PostgreSQL with its nodes. */
export const plan = (fleet: Fleet, machines: Machines): Plan => {
  const { use } = machines
  const connections = fleet.devices * fleet.connected
  const reportsPerSecond = connections * fleet.reports
  const commandsPerSecond = connections * fleet.commands
  const more = Math.max(0, fleet.values - measuredValues)
  /** What stored text of a report grows by with its values. */
  const size = Math.max(1, fleet.values / measuredValues)

  const serverCores = micros * (
    reportsPerSecond * (value("serverReportMicros") + more * value("serverValueMicros")) +
    commandsPerSecond * value("serverCommandMicros")
  )
  const serverBytes = connections * value("connectionBytes")
  const databaseCores = micros * (
    reportsPerSecond * size * value("databaseReportMicros") + commandsPerSecond * value("databaseCommandMicros")
  )
  const databaseWrites = reportsPerSecond * size * value("databaseWrittenBytes")
  const valuesPerDay = reportsPerSecond * fleet.values * secondsOfDay
  const historyBytes = valuesPerDay * fleet.historyDays * keptLonger * value("historyValueBytes")
  const feedBytes = reportsPerSecond * secondsOfDay * fleet.feedDays * size * value("feedReportBytes")
  const deviceBytes = fleet.devices * value("deviceBytes")

  const nodeNeeds = [
    { resource: "cores", units: serverCores / (machines.nodeCores * use) },
    { resource: "memory", units: serverBytes / memoryForConnections(machines) },
    { resource: "connections", units: connections / machines.nodeConnections }
  ]
  const cellNeeds = [
    { resource: "cores of PostgreSQL", units: databaseCores / (machines.databaseCores * use) },
    { resource: "writes of PostgreSQL", units: databaseWrites / (machines.databaseMBps * megabyte * use) },
    { resource: "disk", units: (deviceBytes + historyBytes + feedBytes) / (machines.databaseTB * terabyte * use) }
  ]
  const nodesBoundBy = bindingOf(nodeNeeds)
  const cellsBoundBy = bindingOf(cellNeeds)
  const cells = Math.max(1, Math.ceil(cellsBoundBy.units))
  // Each cell has a node more than it needs, and at least two: one may be away.
  const nodes = cells * Math.max(2, Math.ceil(nodesBoundBy.units / cells) + 1)

  const connectMicros = value(fleet.tls ? "connectTlsMicros" : "connectTcpMicros")
  const byNodes = connections * connectMicros * micros / (nodes * machines.nodeCores)
  const byDatabases = connections * value("databaseConnectMicros") * micros / (cells * machines.databaseCores)
  return {
    reportsPerSecond,
    commandsPerSecond,
    connections,
    nodes,
    nodesBoundBy,
    nodeNeeds,
    serverCores,
    serverBytes,
    cells,
    cellsBoundBy,
    cellNeeds,
    databaseCores,
    databaseWrites,
    deviceBytes,
    historyBytes,
    feedBytes,
    reconnectSeconds: Math.max(byNodes, byDatabases),
    reconnectBoundBy: byNodes >= byDatabases ? "nodes" : "databases"
  }
}
