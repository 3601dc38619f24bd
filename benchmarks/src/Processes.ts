/**
 * Starts the measured servers and the load, each in its own process.
 */
import { type ChildProcess, fork, spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { LoadPlan } from "./Load.ts"
import type { LoadResult } from "./Measurement.ts"

export interface ServerOptions {
  /** Options of Node.js beside those of this process. */
  readonly nodeOptions?: ReadonlyArray<string>
  /** Whether to look at the event loop, for `longestPause`. */
  readonly isGauged?: boolean
  /** The whole environment. Default: that of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** The file descriptor that gets standard error. Default: that of this process. */
  readonly log?: number
}

/** The file of a program of this directory. */
const fileOf = (program: string): string => fileURLToPath(new URL(`${program}.js`, import.meta.url))

const run = (
  program: string,
  args: ReadonlyArray<string>,
  { env, isGauged = false, log, nodeOptions = [] }: ServerOptions = {}
): ChildProcess =>
  spawn(process.execPath, [
    ...process.execArgv,
    ...isGauged ? ["--import", pathToFileURL(fileOf("./LoopGauge")).href] : [],
    ...nodeOptions,
    fileOf(program),
    ...args
  ], {
    stdio: ["ignore", "pipe", log ?? "inherit", ...isGauged ? ["ipc" as const] : []],
    env: env ?? process.env
  })

/** The first line of its output that is JSON; a server may log before. */
const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).on("line", (line) => line.startsWith("{") && resolve(line))
    child.once("exit", (code) => reject(new Error(`the process ended with ${code}`)))
  })

const end = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once("exit", resolve))
  child.kill(signal)
  const timer = setTimeout(() => child.kill("SIGKILL"), 8000)
  await ended
  clearTimeout(timer)
}

/** A running program. */
export interface Program<Said> {
  readonly pid: number
  /** The first line of its output that is JSON, decoded. */
  readonly said: Said
  /** Sends a signal and waits until the process has ended; it is killed after eight seconds. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>
  /** The longest pause of the event loop since the last call, in milliseconds, if it is gauged. */
  readonly longestPause: () => Promise<number>
}

/** Asks the gauge of a process. */
const longestPause = (child: ChildProcess): Promise<number> =>
  new Promise((resolve) => {
    child.once("message", resolve)
    child.send("longest pause")
  })

/** Starts a program and waits for its first line of JSON. Fails when it ends before. */
export const startProgram = async <Said>(
  program: string,
  args: ReadonlyArray<string>,
  options: ServerOptions = {}
): Promise<Program<Said>> => {
  const child = run(program, args, options)
  try {
    const said = JSON.parse(await firstLine(child)) as Said
    return { pid: child.pid!, said, end: (signal) => end(child, signal), longestPause: () => longestPause(child) }
  } catch (error) {
    await end(child, "SIGKILL")
    throw error
  }
}

/** Runs a server while `use` runs. `use` gets the first line of the server's output that is JSON, decoded. */
export const withServer = async <Said, A>(
  program: string,
  args: ReadonlyArray<string>,
  use: (said: Said & Pick<Program<Said>, "pid" | "longestPause">) => Promise<A>,
  options: ServerOptions = {}
): Promise<A> => {
  const { end, longestPause, pid, said } = await startProgram<Said>(program, args, options)
  try {
    return await use({ ...said, pid, longestPause })
  } finally {
    await end("SIGTERM")
  }
}

/** A program that does what it is asked while it runs. */
export interface Helper {
  readonly pid: number
  /** Waits for the answer. One question at a time. Fails when the program ends. */
  readonly ask: <A>(question: string) => Promise<A>
}

/** Runs a program with a plan while `use` runs, and then kills it. The program calls {@link answer}. */
export const withHelper = async <A>(
  program: string,
  plan: unknown,
  use: (helper: Helper) => Promise<A>
): Promise<A> => {
  const child = fork(fileOf(program), [JSON.stringify(plan)])
  const ask = <B>(question: string): Promise<B> =>
    new Promise((resolve, reject) => {
      const onExit = () => reject(new Error(`${program} has ended`))
      child.once("exit", onExit)
      child.once("message", (answer) => {
        child.off("exit", onExit)
        resolve(answer as B)
      })
      child.send(question)
    })
  try {
    return await use({ pid: child.pid!, ask })
  } finally {
    await end(child, "SIGKILL")
  }
}

/** The other side of {@link withHelper}: answers questions for as long as the parent lives. */
export const answer = (answers: Readonly<Record<string, () => unknown>>): void => {
  process.on("message", async (question: string) => process.send!((await answers[question]!()) ?? {}))
  process.on("disconnect", () => process.exit())
}

export const withDirectory = async <A>(use: (directory: string) => Promise<A>): Promise<A> => {
  const directory = await mkdtemp(join(tmpdir(), "device-cloud-bench-"))
  try {
    return await use(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Runs a program and returns the first line of its output that is JSON, decoded. */
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
