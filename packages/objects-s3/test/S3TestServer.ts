/**
 * OpenStack Swift with its S3 API, which checks signatures, in a process of its own.
 */
import { AwsClient } from "aws4fetch"
import { Effect, Redacted } from "effect"
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { program } from "../../../vitest.installed.ts"

const script = fileURLToPath(new URL("fixtures/s3-server.py", import.meta.url))

/** That of Debian, which has the modules of its packages. */
const python = "/usr/bin/python3"

export const { isInstalled, named } = program("swift-proxy-server")

const account = { accessKeyId: "test:tester", secretAccessKey: "testing" }

/** Runs for as long as the scope lives, on a free port, and has one bucket. */
export const start = Effect.gen(function*() {
  const directory = yield* Effect.acquireRelease(
    // Swift needs extended attributes, which files in memory may lack.
    Effect.promise(() => mkdtemp(join("/var/tmp", "device-cloud-s3-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const server = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(python, [script, directory], { stdio: ["ignore", "pipe", "inherit"] })),
    (server) => Effect.sync(() => server.kill("SIGKILL"))
  )
  const port = yield* Effect.callback<string>((resume) => {
    createInterface(server.stdout).once("line", (port) => resume(Effect.succeed(port)))
    server.once("exit", (code) => resume(Effect.die(new Error(`The S3 server has ended with ${code}`))))
  })
  const options = {
    endpoint: `http://127.0.0.1:${port}`,
    bucket: "objects",
    ...account,
    secretAccessKey: Redacted.make(account.secretAccessKey)
  }
  const { ok } = yield* Effect.promise(() =>
    new AwsClient({ ...account, service: "s3" }).fetch(`${options.endpoint}/${options.bucket}`, { method: "PUT" })
  )
  if (!ok) return yield* Effect.die(new Error("The bucket could not be made"))
  return options
})
