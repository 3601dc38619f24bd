/**
 * Starts the measured servers and the load, each in its own process.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { LoadPlan } from "./Load.ts"
import type { LoadResult } from "./Measurement.ts"

const run = (
  program: string,
  args: ReadonlyArray<string>,
  nodeOptions: ReadonlyArray<string> = []
): ChildProcess => {
  const file = fileURLToPath(new URL(`${program}.js`, import.meta.url))
  return spawn(process.execPath, [...process.execArgv, ...nodeOptions, file, ...args], {
    stdio: ["ignore", "pipe", "inherit"]
  })
}

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).once("line", resolve)
    child.once("exit", (code) => reject(new Error(`the process ended with ${code}`)))
  })

/** Runs a server while `use` runs. `use` gets the first line of the server's output, decoded. */
export const withServer = async <Said, A>(
  program: string,
  args: ReadonlyArray<string>,
  use: (said: Said & { readonly pid: number }) => Promise<A>,
  nodeOptions: ReadonlyArray<string> = []
): Promise<A> => {
  const child = run(program, args, nodeOptions)
  try {
    return await use({ ...JSON.parse(await firstLine(child)) as Said, pid: child.pid! })
  } finally {
    const ended = new Promise((resolve) => child.once("exit", resolve))
    child.kill("SIGTERM")
    const timer = setTimeout(() => child.kill("SIGKILL"), 8000)
    await ended
    clearTimeout(timer)
  }
}

export const withDirectory = async <A>(use: (directory: string) => Promise<A>): Promise<A> => {
  const directory = await mkdtemp(join(tmpdir(), "device-cloud-bench-"))
  try {
    return await use(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Runs a program and returns its first line of output, decoded. */
export const outputOf = async <A>(program: string, args: ReadonlyArray<string>): Promise<A> =>
  JSON.parse(await firstLine(run(program, args))) as A

/** Runs `use` while the connections of a load are open. */
export const hold = <A>(plan: LoadPlan, use: () => Promise<A>): Promise<A> =>
  withDirectory(async (directory) => {
    const file = join(directory, "plan.json")
    await writeFile(file, JSON.stringify(plan))
    return withServer("./Load", [file], use)
  })

export const load = (plan: LoadPlan): Promise<LoadResult> =>
  withDirectory(async (directory) => {
    const file = join(directory, "plan.json")
    await writeFile(file, JSON.stringify(plan))
    return outputOf<LoadResult>("./Load", [file])
  })
