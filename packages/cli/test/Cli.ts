/**
 * Runs the command line in this process, against the server of the test.
 */
import { exitCodeOf, run } from "@device-cloud/cli"
import { ownerKey } from "@device-cloud/testing/http"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert } from "@effect/vitest"
import { ConfigProvider, Effect, FileSystem, Layer } from "effect"
import { FetchHttpClient, HttpServer } from "effect/http"
import { TestConsole } from "effect/testing"
import { resolve } from "node:path"

/** What a command has left behind. */
export interface Ran {
  readonly code: number
  /** Lines on the standard output. */
  readonly out: string
  /** Lines on the standard error, with the sentence of the failure. */
  readonly error: string
}

/** In a folder where no server was started: one in the folder of this repository has left its key there. */
const elsewhere = Layer.effect(
  FileSystem.FileSystem,
  Effect.map(FileSystem.FileSystem, (fs) => ({
    ...fs,
    readFileString: (path, encoding) => fs.readFileString(resolve("/nonexistent", path), encoding)
  }))
)

/** Runs the command line with an environment of its own, in a folder where nothing is. */
export const runWith = Effect.fnUntraced(function*(
  environment: Readonly<Record<string, string>>,
  args: ReadonlyArray<string>
): Effect.fn.Return<Ran> {
  return yield* Effect.gen(function*() {
    const exit = yield* Effect.exit(run(args, "0.0.0"))
    const lines = yield* TestConsole.logLines
    const errors = yield* TestConsole.errorLines
    const failure = exit._tag === "Failure"
      ? exit.cause.reasons.flatMap((reason) => reason._tag === "Fail" ? [reason.error.message] : [])
      : []
    return { code: exitCodeOf(exit), out: lines.join("\n"), error: [...errors, ...failure].join("\n") }
  }).pipe(
    Effect.provide(elsewhere.pipe(Layer.provideMerge(NodeServices.layer))),
    Effect.provide([FetchHttpClient.layer, TestConsole.layer]),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { HOME: "/nonexistent", ...environment } })))
  )
})

/** The address of the server of the test. */
export const serverUrl = Effect.map(HttpServer.HttpServer, ({ address }) => HttpServer.formatAddress(address))

/** Runs the command line as the owner of the server. */
export const cli = Effect.fnUntraced(function*(...args: ReadonlyArray<string>) {
  return yield* runWith({ DEVICE_CLOUD_URL: yield* serverUrl, DEVICE_CLOUD_KEY: ownerKey }, args)
})

/** {@link cli}, which must succeed: what it prints as JSON. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test looks into whatever came back
export const json = (...args: ReadonlyArray<string>): Effect.Effect<any, never, HttpServer.HttpServer> =>
  Effect.map(cli(...args, "--json"), ({ code, error, out }) => {
    assert.strictEqual(code, 0, error)
    return JSON.parse(out)
  })
