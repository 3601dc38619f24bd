import {
  type ActionDraft,
  AllowPrivateWebhooks,
  defaultProjectId,
  DeviceCloud,
  type Execution,
  type SceneId,
  Scenes,
  WebhookLimits
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { eventually } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { hostname } from "node:os"
import { storages } from "../../../vitest.storages.ts"

/** A receiver that keeps its requests open until it is told to answer. */
const victim = Effect.gen(function*() {
  const open = new Set<ServerResponse>()
  const seen = { ids: new Array<string>(), mostAtOnce: 0, answers: false }
  const server = createServer((request, response) => {
    seen.ids.push(String(request.headers["webhook-id"]))
    open.add(response)
    seen.mostAtOnce = Math.max(seen.mostAtOnce, open.size)
    response.once("close", () => open.delete(response))
    request.resume().once("end", () => {
      if (seen.answers) response.end()
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.sync(() => server.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => server.close())))
  )
  const answerAll = Effect.sync(() => {
    seen.answers = true
    for (const response of open) response.end()
  })
  return { port: (server.address() as AddressInfo).port, seen, answerAll }
})

const hook = (url: string): ActionDraft => ({
  URI: "action/webhook",
  params: { URL: url, method: "POST", request_timeout: 60 }
})

let lastName = 0

/** Makes a scene that calls the addresses, and runs it. */
const runNew = Effect.fnUntraced(function*(...urls: ReadonlyArray<string>) {
  const scenes = yield* Scenes
  const { scene: { sceneId } } = yield* scenes.create(defaultProjectId, {
    name: `Scene ${++lastName}`,
    status: "enable",
    actions: urls.map(hook)
  })
  yield* scenes.run(defaultProjectId, sceneId)
  return sceneId
})

/** The one execution of each scene, once they all are so. */
const executionsWhen = (sceneIds: ReadonlyArray<SceneId>, wanted: (execution: Execution) => boolean) =>
  Effect.flatMap(Scenes, (scenes) =>
    eventually(
      Effect.forEach(sceneIds, (sceneId) =>
        Effect.map(
          scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 1 }),
          ({ items: [execution] }) => execution!
        )),
      { until: (executions) => executions.every(wanted) }
    ))

const cloudOn = (storage: (typeof storages)[number][1], limits: WebhookLimits) =>
  DeviceCloud.layer.pipe(
    Layer.provide(storage),
    Layer.provideMerge(PlatformNode.layer),
    Layer.provide(Layer.succeed(AllowPrivateWebhooks, true)),
    Layer.provide(Layer.succeed(WebhookLimits, limits))
  )

for (const [name, storage] of storages) {
  layer(cloudOn(storage, { rate: 0.001, burst: 5, atOnce: 10 }), { excludeTestServices: true })(
    `the rate of webhooks on ${name}`,
    (it) => {
      it.effect("names that stand for one address get no more together than one of them", () =>
        Effect.gen(function*() {
          const { answerAll, port, seen } = yield* victim
          yield* answerAll
          const urls = ["localhost", hostname()].map((host) => `http://${host}:${port}/`)
          const sceneIds = yield* Effect.forEach(Array.from({ length: 10 }), () => runNew(...urls))
          const executions = yield* executionsWhen(
            sceneIds,
            ({ outcomes }) =>
              outcomes.length > 0 && outcomes.every(({ attempts, hasWaited }) => attempts > 0 || hasWaited === true)
          )
          assert.isAtMost(seen.ids.length, 5)
          const attempts = executions.flatMap(({ outcomes }) => outcomes).reduce(
            (sum, { attempts }) => sum + attempts,
            0
          )
          assert.isAtMost(attempts, 10)
        }))

      it.effect("forty scenes that call one host send it no more than it may get, and put off the others", () =>
        Effect.gen(function*() {
          const { answerAll, port, seen } = yield* victim
          yield* answerAll
          const url = `http://127.0.0.1:${port}/`
          // Another port of the host counts as the same host.
          const sceneIds = yield* Effect.forEach(Array.from({ length: 40 }), () => runNew(url, "http://127.0.0.1:1/"))
          const executions = yield* executionsWhen(
            sceneIds,
            ({ outcomes }) =>
              outcomes.length > 0 && outcomes.every(({ attempts, hasWaited }) => attempts > 0 || hasWaited === true)
          )
          const outcomes = executions.flatMap(({ outcomes }) => outcomes)
          assert.strictEqual(outcomes.reduce((sum, { attempts }) => sum + attempts, 0), 5)
          assert.isAtMost(seen.ids.length, 5)
          const waiting = outcomes.filter(({ attempts }) => attempts === 0)
          for (const { detail, nextAt, status } of waiting) {
            assert.deepStrictEqual([status, detail], [
              "pending",
              "Waits for its turn: 127.0.0.1 gets as many webhooks as it may"
            ])
            assert.isNotNull(nextAt)
          }
          assert.strictEqual(new Set(waiting.map(({ nextAt }) => nextAt)).size, waiting.length)
        }))
    }
  )

  layer(cloudOn(storage, { rate: 20, burst: 100, atOnce: 3 }), { excludeTestServices: true })(
    `webhooks at once on ${name}`,
    (it) => {
      it.effect("a host that does not answer holds few places, and gets everything in the end, once", () =>
        Effect.gen(function*() {
          const { answerAll, port, seen } = yield* victim
          const sceneIds = yield* Effect.forEach(
            Array.from({ length: 12 }),
            () => runNew(`http://127.0.0.1:${port}/`)
          )
          yield* eventually(Effect.sync(() => seen.ids.length), { until: (count) => count === 3 })
          // Nothing of the project waits for that host.
          const other = yield* victim
          yield* other.answerAll
          const [execution] = yield* executionsWhen(
            [yield* runNew(`http://localhost:${other.port}/`)],
            ({ dueAt }) => dueAt === null
          )
          assert.strictEqual(execution!.status, "succeeded")
          assert.strictEqual(seen.ids.length, 3)
          yield* answerAll
          const executions = yield* executionsWhen(sceneIds, ({ dueAt }) => dueAt === null)
          assert.deepStrictEqual(
            executions.map(({ outcomes: [outcome] }) => [outcome!.status, outcome!.attempts]),
            Array.from({ length: 12 }, () => ["succeeded", 1])
          )
          assert.strictEqual(new Set(seen.ids).size, 12)
          assert.strictEqual(seen.ids.length, 12)
          assert.strictEqual(seen.mostAtOnce, 3)
        }))
    }
  )
}
