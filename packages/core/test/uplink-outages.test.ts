import { defaultProjectId, Feed, Nodes, Scenes } from "@device-cloud/core"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Stream } from "effect"
import { TestClock } from "effect/testing"
import { cloudWith } from "./FaultyCloud.ts"
import { executionsOf, newScene, set } from "./SceneFixtures.ts"

/** A cloud that stores nothing of what devices say in its first time, and what it logs. */
const cloudAway = (until: "1 second" | "1 minute") => {
  const logged: Array<unknown> = []
  const log = Logger.layer([Logger.make(({ message }) => void logged.push([message].flat()[0]))])
  const faulty = cloudWith({ on: "UplinkStore.commit", does: "fail", during: ["0 seconds", until] })
  return { cloud: Layer.provideMerge(faulty, log), logged }
}

/** Devices of a project that each post a value, and hear that it is stored. */
const post = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct()
  return yield* Effect.forEach(
    Array.from({ length: 4 }),
    () =>
      Effect.gen(function*() {
        const device = yield* SimulatedDevice.connect(yield* Fixtures.createDevice(product))
        return yield* Effect.forkChild(device.postProperties({ n: 1 }))
      })
  )
})

it.effect("the log says once that what devices say cannot be stored, and once that it is again", () => {
  const { cloud, logged } = cloudAway("1 minute")
  return Effect.gen(function*() {
    const posts = yield* post
    yield* TestClock.adjust("10 seconds")
    yield* TestClock.adjust("40 seconds")
    assert.deepStrictEqual(logged, ["What devices say cannot be stored; trying again"])
    yield* TestClock.adjust("20 seconds")
    for (const { code } of yield* Fiber.joinAll(posts)) assert.strictEqual(code, 200)
    assert.deepStrictEqual(logged.slice(1), ["What devices say is stored again"])
  }).pipe(Effect.provide(cloud))
})

it.effect("what is stored within a moment, as after a deadlock, is not in the log", () => {
  const { cloud, logged } = cloudAway("1 second")
  return Effect.gen(function*() {
    const posts = yield* post
    yield* TestClock.adjust("5 seconds")
    for (const { code } of yield* Fiber.joinAll(posts)) assert.strictEqual(code, 200)
    assert.deepStrictEqual(logged, [])
  }).pipe(Effect.provide(cloud))
})

it.effect("a logger that throws while the storage is away ends nothing", () => {
  const throwing = Logger.layer([Logger.make(() => {
    throw new Error("it throws")
  })])
  const cloud = Layer.provideMerge(cloudWith({ does: "fail", during: ["10 seconds", "1 minute"] }), throwing)
  return Effect.gen(function*() {
    const device = yield* SimulatedDevice.connect(
      yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
    )
    const sceneId = yield* newScene({ actions: [set(device.device, { n: 2 })] })
    const heard = yield* (yield* Feed).stream({ projectId: defaultProjectId }).pipe(
      Stream.filter(({ event }) => event._tag === "PropertiesReported"),
      Stream.runHead,
      Effect.forkScoped
    )
    yield* TestClock.adjust("20 seconds")
    const posted = yield* Effect.forkChild(device.postProperties({ n: 1 }))
    yield* TestClock.adjust("2 minutes")
    assert.strictEqual((yield* Fiber.join(posted)).code, 200)
    assert.deepInclude((yield* (yield* Nodes).list)[0], { isSilent: false, connections: 1 })
    yield* Fiber.join(heard)
    yield* (yield* Scenes).run(defaultProjectId, sceneId)
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* executionsOf(sceneId))[0]?.status, "succeeded")
  }).pipe(Effect.scoped, Effect.provide(cloud))
})
