/**
 * A real `nats-server` with JetStream, which tests start, kill and start again.
 */
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { environment, program } from "../../../vitest.installed.ts"
import { freePort } from "../../../vitest.ports.ts"

export const { isInstalled, named } = program("nats-server")

const isListening = (port: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", () => resume(Effect.succeed(false)))
  })

/** A server that is not running yet, with a directory of its own. */
export const make = Effect.fnUntraced(function*(...options: ReadonlyArray<string>) {
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-nats-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const port = yield* freePort
  let child: ChildProcess | undefined

  const kill = Effect.callback<void>((resume) => {
    if (child === undefined || child.exitCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
    child = undefined
  })
  yield* Effect.addFinalizer(() => kill)

  const start = Effect.gen(function*() {
    child = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", directory, ...options], {
      env: environment,
      stdio: "ignore"
    })
    while (!(yield* isListening(port))) yield* Effect.sleep(20)
  })

  /** From now on the server holds its connections and says nothing, until it is killed. */
  const freeze = Effect.sync(() => void child?.kill("SIGSTOP"))

  return { directory, freeze, kill, port, start, url: `nats://127.0.0.1:${port}` }
})
