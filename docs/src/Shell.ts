/** A folder in which the programs of a page run, each with the variables that those before it have left. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import type { ExampleServer } from "./ExampleServer.ts"
import { root } from "./Pages.ts"

export interface Shell {
  readonly directory: string
  /** Runs a program to its end. Returns what it prints on the standard output. Rejects if it fails, or does not end. */
  readonly run: (script: string) => Promise<string>
  /** Runs a program as in a terminal, until it ends or what it has printed is enough. Returns all that it has printed. */
  readonly type: (script: string, isEnough: (printed: string) => boolean) => Promise<string>
  /** Ends all that still runs, and removes the folder. */
  readonly end: () => void
}

/** The command line finds MQTT where the server of the examples has it. */
const commandLine = `#!/bin/sh
case "$1" in simulate | doctor) set -- "$@" --mqtt "$MQTTS" ;; esac
exec node "${root}packages/cli/dist/main.js" "$@"
`

/** Ends a program, and what it has started. */
const stop = ({ pid }: ChildProcess): void => {
  try {
    process.kill(-pid!)
  } catch {
    // It has ended.
  }
}

/** How long a script of {@link Shell.run} may take, in milliseconds. */
const longest = 120_000

/**
 * Opens the folder.
 *
 * @param known what is known under names: programs find `device_id` as `DEVICE_ID`, unless they have set it themselves
 * @param patience how long a program of {@link Shell.type} may take, in milliseconds
 */
export const open = (
  server: ExampleServer,
  key: string,
  known: Readonly<Record<string, string>>,
  patience: number
): Shell => {
  const directory = mkdtempSync(join(tmpdir(), "device-cloud-example-"))
  const processes: Array<ChildProcess> = []
  symlinkSync(server.directory, join(directory, ".device-cloud"))
  mkdirSync(join(directory, ".bin"))
  writeFileSync(join(directory, ".bin/device-cloud"), commandLine, { mode: 0o755 })
  const variables = {
    PATH: `${join(directory, ".bin")}:${process.env["PATH"]}:/usr/sbin`,
    HOME: directory,
    REPOSITORY: root,
    KEY: key,
    API: `${server.http}/openapi/v1`,
    MQTTS: server.mqtts,
    DEVICE_CLOUD_URL: server.http,
    DEVICE_CLOUD_KEY: key
  }
  writeFileSync(
    join(directory, ".variables"),
    Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`).join("\n")
  )

  const start = (script: string) => {
    const ids = Object.entries(known).filter(([name]) => /^\w+_(id|key|secret|name)$/.test(name))
      .map(([name, value]) => `: "\${${name.toUpperCase()}:=${value.replaceAll(/[\\$`"}]/g, "\\$&")}}"`).join("\n")
    const child = spawn(
      "bash",
      ["-euo", "pipefail", "-c", `set -a; . ./.variables\n${ids}\n${script}\nexport -p > .variables`],
      { cwd: directory, detached: true, stdio: ["ignore", "pipe", "pipe"] }
    )
    processes.push(child)
    const printed = { out: "", error: "", all: "" }
    for (const [stream, name] of [[child.stdout, "out"], [child.stderr, "error"]] as const) {
      stream.on("data", (text) => {
        printed[name] += text
        printed.all += text
      })
    }
    return { child, printed, ended: once(child, "exit").then(([code]) => code as number | null) }
  }

  return {
    directory,
    run: async (script) => {
      const { ended, printed } = start(script)
      const code = await Promise.race([ended, setTimeout(longest, "too late", { ref: false })])
      await setTimeout(20)
      if (code === "too late") throw new Error(`has not ended after ${longest / 1000} s: ${printed.all.trim()}`)
      if (code !== 0) throw new Error(`ended with ${code}: ${printed.error.trim()} ${printed.out.trim()}`)
      return printed.out
    },
    type: async (script, isEnough) => {
      // As in a terminal: what goes to both streams stays in order.
      const { child, ended, printed } = start(`exec 2>&1\n${script}`)
      for (const end = Date.now() + patience; child.exitCode === null && !isEnough(printed.all);) {
        if (Date.now() > end) break
        await Promise.race([ended, setTimeout(50)])
      }
      const enough = printed.all
      // Most end by themselves, and then all that they have printed counts.
      await Promise.race([ended, setTimeout(1000)])
      stop(child)
      await setTimeout(20)
      return child.exitCode === null ? enough : printed.all
    },
    end: () => {
      processes.forEach(stop)
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    }
  }
}
