/**
 * What may happen to the database while two nodes work: killed, frozen, locked, out of connections, disk full.
 */
import { execFile } from "node:child_process"
import { chmod, open, rm } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { withDirectory } from "../../Processes.ts"
import { type Database, endOthers } from "../../Database.ts"
import type { Drill, Form, Result } from "../Drill.ts"
import { type Lab, type LabOptions, withLab } from "../Lab.ts"

const execute = promisify(execFile)

const options: LabOptions = { nodes: 2, devices: 20 }

/** Devices stay connected and load goes on while the fault comes and goes. `fault` resolves when it has gone. */
const underLoad = (form: Form, fault: (lab: Lab) => Promise<unknown>, more: Partial<LabOptions> = {}) =>
  withLab({ ...options, ...more }, async (lab): Promise<Result> => {
    await lab.visit()
    lab.report()
    lab.command()
    let recovery = 0
    for (let round = 0; round < (form === "short" ? 1 : 3); round++) {
      await sleep(1500)
      await fault(lab)
      recovery = Math.max(recovery, await lab.recovered(Date.now()))
    }
    // A node that was held for dead by mistake shows within this time.
    return { ...await lab.settle(form === "short" ? 4000 : 12_000), recovery }
  })

export const databaseKilled: Drill = {
  name: "database-killed",
  does: "all processes of the database get `kill -9`; it is started again",
  forms: ["short", "long"],
  run: (form) => underLoad(form, ({ database }) => database.kill())
}

export const databaseFailsOver: Drill = {
  name: "database-failover",
  does: "the primary gets `kill -9`, and its synchronous replica takes its place",
  forms: ["short", "long"],
  run: () =>
    withLab({ ...options, replica: true }, async (lab): Promise<Result> => {
      await lab.visit()
      lab.report()
      lab.command()
      await sleep(3000)
      await lab.failOver()
      const recovery = await lab.recovered(Date.now())
      return { ...await lab.settle(4000), recovery }
    })
}

export const databaseFrozen: Drill = {
  name: "database-frozen",
  does: "the database stands still for 20 s",
  forms: ["short", "long"],
  run: (form) =>
    underLoad(form, async ({ database }) => {
      await database.freeze()
      await sleep(form === "short" ? 11_000 : 20_000)
      await database.thaw()
    })
}

/** The tables that devices, commands and presence need. */
const tables = "device, command, node"

export const databaseLocked: Drill = {
  name: "database-locked",
  does: "somebody holds a lock on the tables of devices, commands and nodes for 20 s",
  forms: ["short", "long"],
  run: (form) =>
    underLoad(form, async ({ database }) => {
      const { close, query } = await database.connect()
      await query("BEGIN")
      await query(`LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE`)
      await sleep(form === "short" ? 10_000 : 20_000)
      await query("COMMIT")
      await close()
    })
}

/** Takes all connections that the database has to give, also those of the nodes. */
const takeConnections = async (database: Database): Promise<() => Promise<unknown>> => {
  const own = await database.connect()
  const taken = [own]
  const take = async () => {
    try {
      while (true) taken.push(await database.connect())
    } catch {
      // There are none left.
    }
  }
  await take()
  await endOthers(own.query)
  await take()
  return () => Promise.all(taken.map(({ close }) => close()))
}

export const outOfConnections: Drill = {
  name: "out-of-connections",
  does: "somebody takes all connections of the database, and ends those of the nodes, for 10 s",
  forms: ["short", "long"],
  run: (form) =>
    underLoad(form, async ({ database }) => {
      const giveBack = await takeConnections(database)
      await sleep(form === "short" ? 3000 : 10_000)
      await giveBack()
    })
}

/** Runs `use` on a small disk of its own, if there may be one: root can make it. */
const withSmallDisk = <A>(use: (directory: string) => Promise<A>): Promise<A | undefined> =>
  withDirectory(async (parent) => {
    // PostgreSQL runs as another account than root.
    await chmod(parent, 0o755)
    try {
      await execute("mount", ["-t", "tmpfs", "-o", "size=400m,mode=755", "device-cloud-drill", parent])
    } catch {
      return undefined
    }
    try {
      return await use(parent)
    } finally {
      await execute("umount", ["--lazy", parent])
    }
  })

/** Fills what is left of the disk. Returns a function that gives it back. */
const fill = async (directory: string): Promise<() => Promise<void>> => {
  const path = join(directory, "ballast")
  const file = await open(path, "w")
  try {
    for (let size = 2 ** 20; size >= 4096; size /= 4) {
      const block = Buffer.alloc(size)
      try {
        while ((await file.write(block)).bytesWritten === size);
      } catch {
        // Full, for blocks of this size.
      }
    }
  } finally {
    await file.close()
  }
  return () => rm(path)
}

export const diskFull: Drill = {
  name: "disk-full",
  does: "the disk of the database is full for 10 s (only as root)",
  forms: ["short", "long"],
  run: (form) =>
    withSmallDisk((disk) =>
      underLoad(form, async () => {
        const giveBack = await fill(disk)
        await sleep(form === "short" ? 4000 : 10_000)
        await giveBack()
      }, { databaseDirectory: join(disk, "postgres") })
    )
}
