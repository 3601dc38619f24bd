/**
 * Serves until it is stopped.
 */
import { AccessKeys, defaultProjectId } from "@device-cloud/core"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import * as Server from "./Server.ts"

const announce = Layer.effectDiscard(Effect.gen(function*() {
  const { key } = yield* (yield* AccessKeys).create(defaultProjectId, { name: "Acme", role: "admin" })
  const { address } = yield* HttpServer.HttpServer
  yield* Console.log(`${HttpServer.formatAddress(address)}, access key ${Redacted.value(key)}`)
}))

announce.pipe(Layer.provide(Server.layer(Number(process.argv[2] ?? 8080))), Layer.launch, NodeRuntime.runMain)
