/** The reference server, in memory, in a process of its own: examples run against it. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { root } from "./Pages.ts"

export interface ExampleServer {
  readonly http: string
  readonly mqtts: string
  /** The access key of the owner. */
  readonly key: string
  /** Its directory: the certificates are in `tls`. */
  readonly directory: string
  readonly stop: () => Promise<void>
}

/** Starts the server on free ports. */
export const start = async (): Promise<ExampleServer> => {
  const directory = mkdtempSync(join(tmpdir(), "device-cloud-docs-"))
  const child: ChildProcess = spawn(process.execPath, ["scripts/start.js"], {
    cwd: root,
    env: {
      PATH: process.env["PATH"],
      STORAGE: "memory",
      DATA_DIR: directory,
      HTTP_PORT: "0",
      MQTTS_PORT: "0",
      WEBHOOK_ALLOW_PRIVATE: "true"
    },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const stop = () =>
    new Promise<void>((resolve) => {
      child.once("exit", () => {
        rmSync(directory, { recursive: true, force: true })
        resolve()
      })
      child.kill()
    })
  let key = ""
  for await (const line of createInterface({ input: child.stdout! })) {
    const said = JSON.parse(line)
    if (said.event === "admin_key") key = said.key
    if (said.event === "ready") return { http: said.http, mqtts: said.mqtts, key, directory, stop }
  }
  throw new Error("the server has ended")
}
