/**
 * A replica of a database, to which every commit of the primary waits to be copied,
 * and an address that follows whichever of them is the primary.
 */
import { execFile } from "node:child_process"
import { rm, writeFile } from "node:fs/promises"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { type Database, withDatabaseIn } from "../Database.ts"

const execute = promisify(execFile)

/** Milliseconds between two looks whether the replica copies. */
const pause = 50

/** Copies the data of a primary that works, so that a server on the copy follows it. */
const copy = async (primary: Database, from: string, to: string): Promise<void> => {
  const { close, query } = await primary.connect()
  await query("SELECT pg_backup_start('replica', true)")
  await execute("cp", ["-a", `${from}/.`, to])
  const [stopped] = await query("SELECT labelfile FROM pg_backup_stop(false)")
  await close()
  const data = join(to, "data")
  const { hostname, password, port, username } = new URL(primary.url)
  const primaryInfo = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`
  await rm(join(data, "postmaster.pid"))
  await writeFile(join(data, "backup_label"), String(stopped!["labelfile"]))
  await writeFile(join(data, "standby.signal"), "")
  await writeFile(join(data, "postgresql.auto.conf"), `primary_conninfo = '${primaryInfo}'\n`, { flag: "a" })
  // Files that were made here belong to whom the copied ones belong to.
  await execute("chown", ["--recursive", `--reference=${join(data, "PG_VERSION")}`, data])
}

/** Connections to `target`, as a balancer of TCP connections makes them. */
class Address {
  target: string
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((socket) => {
    const { hostname, port } = new URL(this.target)
    const other = connect(Number(port), hostname)
    for (const [one, another] of [[socket, other], [other, socket]] as const) {
      this.#sockets.add(one)
      one.on("error", () => another.destroy()).on("close", () => {
        this.#sockets.delete(one)
        another.destroy()
      })
      one.pipe(another)
    }
  })

  constructor(target: string) {
    this.target = target
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve))
    const url = new URL(this.target)
    url.port = String((this.#server.address() as AddressInfo).port)
    return url.href
  }

  /** Ends all connections; new ones go to another server. */
  move(target: string): void {
    this.target = target
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** A primary and its replica, behind one address. */
export interface Pair {
  readonly url: string
  /** `kill -9` of the primary; the replica is promoted, and the address moves to it. The old primary is not reached again. */
  readonly failOver: () => Promise<void>
  /** `kill -9` of both. */
  readonly kill: () => Promise<void>
}

/** Runs `use` on a primary in a directory, with a replica in another, empty one. */
export const withReplica = async <A>(
  primary: Database,
  primaryDirectory: string,
  replicaDirectory: string,
  use: (pair: Pair) => Promise<A>
): Promise<A> => {
  await copy(primary, primaryDirectory, replicaDirectory)
  return withDatabaseIn(replicaDirectory, async (replica) => {
    await primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
    await primary.query("SELECT pg_reload_conf()")
    const copies = async () => {
      const [row] = await primary.query("SELECT count(*)::int AS n FROM pg_stat_replication WHERE sync_state = 'sync'")
      return Number(row!["n"]) === 1
    }
    while (!await copies()) await sleep(pause)
    const address = new Address(primary.url)
    try {
      return await use({
        url: await address.listen(),
        failOver: async () => {
          await primary.kill()
          await replica.query("SELECT pg_promote(true, 30)")
          address.move(replica.url)
        },
        kill: async () => void await Promise.all([primary.kill(), replica.kill()])
      })
    } finally {
      address.close()
    }
  })
}
