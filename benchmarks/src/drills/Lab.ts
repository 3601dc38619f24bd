/**
 * Where a drill happens: a database, nodes, devices that report, clients that
 * command them, and a follower of the events.
 */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { withDirectory } from "../Processes.ts"
import { ownerKey, type ReferenceServerOptions } from "../ReferenceServer.ts"
import { Tenant } from "../Tenant.ts"
import { CloudNode } from "./CloudNode.ts"
import { CommandClient } from "./CommandClient.ts"
import { type Database, withDatabaseIn } from "../Database.ts"
import { DrillDevice } from "./DrillDevice.ts"
import { EventFollower } from "./EventFollower.ts"
import { type Pair, withReplica } from "./Replica.ts"
import { type Account, count, type Counts } from "./Ledger.ts"

export interface LabOptions {
  readonly nodes: number
  readonly devices: number
  readonly scheme?: "mqtt" | "mqtts"
  /** Environment and options of Node.js of each node, by its place. */
  readonly node?: (place: number) => Pick<ReferenceServerOptions, "env" | "nodeOptions" | "program">
  /** Holds the database, instead of a temporary directory. */
  readonly databaseDirectory?: string
  /** The database has a replica, and the nodes use an address that {@link Lab.failOver} moves to it. */
  readonly replica?: boolean
}

/** Milliseconds. */
const limits = { settle: 40_000, end: 5000, ghosts: 16_000, recovery: 120_000 }
const millisToSubscribe = 200
/** Devices whose accounts are read at a time. */
const readers = 8
const pageSize = 100

const model = [
  { id: "n", name: "Number of the report", accessMode: "r", dataType: { type: "int", min: 0, max: 1_000_000_000 } },
  { id: "k", name: "Number of the command", accessMode: "rw", dataType: { type: "int", min: 0, max: 1_000_000_000 } }
]

/** Waits until something is so; false if the time is over. */
export const until = async (isSo: () => boolean | Promise<boolean>, limit: number): Promise<boolean> => {
  const end = performance.now() + limit
  while (!await isSo()) {
    if (performance.now() > end) return false
    await sleep(20)
  }
  return true
}

export class Lab {
  readonly database: Database
  readonly nodes: ReadonlyArray<CloudNode>
  readonly devices: Array<DrillDevice> = []
  readonly clients: Array<CommandClient> = []
  readonly events: EventFollower
  readonly directory: string
  /** Kills the database; the nodes find its replica in its place. */
  readonly failOver: () => Promise<void>
  private productKey = ""
  private turn = 0

  constructor(
    directory: string,
    database: Database,
    nodes: ReadonlyArray<CloudNode>,
    failOver: () => Promise<void> = () => Promise.reject(new Error("There is no replica"))
  ) {
    this.directory = directory
    this.failOver = failOver
    this.database = database
    this.nodes = nodes
    this.events = new EventFollower(() => this.anyNode())
  }

  /** A node that works; the last of them first, because faults begin with the first. */
  anyNode(): CloudNode {
    return this.nodes.findLast(({ isUp }) => isUp) ?? this.nodes.at(-1)!
  }

  /** The nodes in turns, as a balancer names them that does not know who is dead. */
  nextNode(): CloudNode {
    return this.nodes[this.turn++ % this.nodes.length]!
  }

  get api(): Tenant {
    return new Tenant({ ...this.anyNode().address, key: ownerKey })
  }

  async createDevices(count: number, scheme?: "mqtt" | "mqtts"): Promise<void> {
    const product = await this.api.createProduct("Drill", model)
    this.productKey = product.product_key
    for (const credentials of await this.api.createDevices(product, count)) {
      this.devices.push(new DrillDevice(credentials, () => this.nextNode(), scheme))
    }
    await this.events.start()
  }

  /** Connects each device to a node, in turns. */
  async connect(node: (place: number) => CloudNode = (place) => this.nodes[place % this.nodes.length]!): Promise<void> {
    for (const [place, device] of this.devices.entries()) device.connect(node(place))
    await Promise.all(this.devices.map((device) => device.untilConnected()))
  }

  /** Connects each device to each node, so that the session is found again there and gets commands at once. */
  async visit(): Promise<void> {
    for (const node of this.nodes) {
      await this.connect(() => node)
      await sleep(millisToSubscribe)
    }
    await this.connect()
  }

  /** Lets every device report. Milliseconds between two reports of a device, if they are acknowledged at once. */
  report(interval = 50): void {
    for (const device of this.devices) device.startReports(interval)
  }

  /** Lets a client command each device through each of the nodes, or those that `via` names. */
  command(via: ReadonlyArray<() => CloudNode> = this.nodes.map((node) => () => node), pause = 20): void {
    for (const device of this.devices) {
      for (const node of via) this.clients.push(new CommandClient(device, node))
    }
    for (const client of this.clients) client.start(pause)
  }

  /** Waits until a report that was sent later than `since` is acknowledged for each device. Returns milliseconds. */
  async recovered(since: number, devices: ReadonlyArray<DrillDevice> = this.devices): Promise<number> {
    const isSo = await until(
      () => devices.every(({ latestAcknowledged }) => latestAcknowledged >= since),
      limits.recovery
    )
    return isSo ? Date.now() - since : Infinity
  }

  /** Ends the load, waits until nothing more is to come, and counts. */
  async settle(watch: number): Promise<Counts> {
    await Promise.all(this.clients.map((client) => client.stop()))
    for (const device of this.devices) device.stopReports()
    const isSettled = () =>
      this.devices.every((device) =>
        !device.isReporting &&
        device.acknowledged.length <= this.events.told(device.id).reports.length
      ) && this.clients.every(({ device, messageIds }) => messageIds.every((id) => device.came.has(id)))
    await until(isSettled, limits.settle)
    await until(() => this.haveEnded(), limits.end)
    await until(() => this.devices.every(({ open }) => open.length <= 1), limits.ghosts)
    await sleep(watch)
    return count(await this.accounts(), await this.sessions())
  }

  /** Sessions of all nodes that work. */
  async sessions(): Promise<number> {
    let sessions = 0
    for (const node of this.nodes) if (node.isUp) sessions += await node.metric("device_cloud_connections")
    return sessions
  }

  /** The status of a device according to the API. */
  async status({ id }: DrillDevice): Promise<string> {
    return (await this.api.call<{ readonly status: string }>("GET", `/things/${id}/status`)).status
  }

  stop(): void {
    for (const device of this.devices) {
      device.stopReports()
      device.leave()
    }
    this.events.stop()
  }

  private async accounts(): Promise<ReadonlyArray<Account>> {
    const history = new Map<string, Array<number>>(this.devices.map(({ id }) => [id, []]))
    const lines = await this.api.text(`/products/${this.productKey}/history/export?format=ndjson&property=n`)
    for (const line of lines.split("\n").filter((line) => line !== "")) {
      const { device_id, value } = JSON.parse(line) as { readonly device_id: string; readonly value: number }
      history.get(device_id)!.push(value)
    }
    const accounts: Array<Account> = []
    const devices = this.devices.values()
    await Promise.all(Array.from({ length: readers }, async () => {
      for (const device of devices) {
        accounts.push({
          device,
          clients: this.clients.filter((client) => client.device === device),
          told: this.events.told(device.id),
          history: history.get(device.id)!,
          states: await this.states(device),
          status: await this.status(device)
        })
      }
    }))
    return accounts
  }

  /** Whether all commands that the cloud has taken have succeeded. */
  private async haveEnded(): Promise<boolean> {
    for (const device of new Set(this.clients.map(({ device }) => device))) {
      const states = await this.states(device)
      for (const client of this.clients) {
        if (client.device === device && client.messageIds.some((id) => states.get(id) !== "succeeded")) return false
      }
    }
    return true
  }

  private async states({ id }: DrillDevice): Promise<ReadonlyMap<number, string>> {
    const states = new Map<number, string>()
    for (let page = 1, pages = 1; page <= pages; page++) {
      const found = await this.api.call<{
        readonly results: ReadonlyArray<{ readonly message_id: string; readonly state: string }>
        readonly pages: number
      }>("GET", `/things/${id}/messages?page=${page}&page_size=${pageSize}`)
      for (const { message_id, state } of found.results) states.set(Number(message_id), state)
      pages = found.pages
    }
    return states
  }
}

/** Runs `use` in a lab whose devices are created and not connected. */
export const withLab = <A>(options: LabOptions, use: (lab: Lab) => Promise<A>): Promise<A> =>
  withDirectory(async (directory) => {
    const databaseDirectory = options.databaseDirectory ?? join(directory, "postgres")
    await mkdir(databaseDirectory, { recursive: true })
    return withDatabaseIn(databaseDirectory, async (database) => {
      const run = async ({ failOver, kill, url }: Pick<Pair, "url" | "kill"> & Partial<Pair>): Promise<A> => {
        const nodes = Array.from(
          { length: options.nodes },
          (_, place) =>
            new CloudNode(String.fromCodePoint(97 + place), {
              directory: join(directory, `node-${place}`),
              databaseUrl: url,
              ...options.node?.(place)
            })
        )
        const lab = new Lab(directory, database, nodes, failOver)
        const end = () => Promise.all(nodes.map((node) => node.end("SIGKILL")))
        /** Somebody ends the drill: nothing of it stays behind. */
        const giveUp = async () => {
          await Promise.all([end(), kill()])
          process.exit(1)
        }
        process.on("SIGINT", giveUp).on("SIGTERM", giveUp)
        try {
          await Promise.all(nodes.map((node) => node.start()))
          await lab.createDevices(options.devices, options.scheme)
          return await use(lab)
        } finally {
          lab.stop()
          await end()
          process.off("SIGINT", giveUp).off("SIGTERM", giveUp)
        }
      }
      return options.replica === true
        ? withReplica(database, databaseDirectory, join(directory, "replica"), run)
        : run(database)
    })
  })
