import {
  type DeviceCloud,
  DeviceId,
  DeviceName,
  DeviceStore,
  type Json,
  ProductKey,
  ProductStore,
  ProjectId,
  ProjectStore,
  type Shadow,
  ShadowStore
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { EmbeddedPostgres } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { type Context, Effect, Layer, Option, Redacted } from "effect"
import { inject } from "vitest"

const epoch = Date.UTC(2026, 0, 1)

const insertDevice = Effect.gen(function*() {
  const projectId = ProjectId.make("nodes")
  yield* (yield* ProjectStore).insert({ id: projectId, name: "Nodes", createdAt: epoch })
  const { productKey } = yield* (yield* ProductStore).insert({
    projectId,
    productKey: ProductKey.make("nodes"),
    productSecret: "productsecret016",
    name: "Sensor",
    description: "",
    photoUrl: "",
    deviceType: "",
    nodeType: "direct",
    networkType: "wifi",
    protocolType: "",
    validateType: "none",
    dataFormat: "json",
    authType: "secret",
    dataSource: 0,
    dynamicRegister: false,
    status: "developing",
    createdAt: epoch,
    updatedAt: epoch
  })
  const deviceId = DeviceId.make("device")
  yield* (yield* DeviceStore).insertMany(projectId, productKey, [{
    deviceId,
    deviceName: DeviceName.make("device"),
    deviceSecret: "0123456789abcdef0123456789abcdef",
    nickname: "",
    batchId: 0,
    cloudGateway: null,
    createdAt: epoch
  }])
  return deviceId
})

const set = (property: string, value: Json, at: number) => (shadow: Shadow) =>
  [
    shadow.version,
    {
      ...shadow,
      version: shadow.version + 1,
      reported: { ...shadow.reported, [property]: { value, time: at } },
      updatedAt: at
    }
  ] as const

it.live("several nodes on one database lose no update, whatever each remembers", () =>
  Effect.gen(function*() {
    const url = yield* EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")))
    const node = Layer.build(Layer.fresh(StoragePg.layer({ url })))
    const [first, second] = [yield* node, yield* node]
    const deviceId = yield* Effect.provide(insertDevice, first)
    const on = (context: Context.Context<DeviceCloud.Stores>) => ({
      modify: <A>(modify: (shadow: Shadow) => readonly [A, Shadow]) =>
        Effect.flatMap(ShadowStore, (store) => store.modify([{ deviceId, modify }])).pipe(
          Effect.map(([answer]) => Option.getOrThrow(answer!)),
          Effect.provide(context)
        )
    })
    const [one, two] = [on(first), on(second)]
    assert.strictEqual(yield* one.modify(set("a", 1, epoch + 1)), 0)
    assert.strictEqual(yield* two.modify(set("b", 2, epoch + 2)), 1)
    // What only looks sees what another node has written.
    assert.strictEqual(yield* one.modify((shadow) => [shadow.version, shadow]), 2)
    assert.strictEqual(yield* one.modify(set("c", 3, epoch + 3)), 2)
    // The version goes back and comes again, with another content.
    yield* two.modify((shadow) => [0, { ...shadow, version: 0, reported: {}, updatedAt: epoch + 4 }])
    for (let at = 5; at <= 7; at++) yield* two.modify(set("d", at, epoch + at))
    assert.strictEqual(yield* one.modify(set("e", 8, epoch + 8)), 3)
    yield* Effect.all(
      Array.from({ length: 40 }, (_, i) => [one, two][i % 2]!.modify(set(`w${i}`, i, epoch + 10 + i))),
      { concurrency: "unbounded" }
    )
    const shadow = yield* two.modify((shadow) => [shadow, shadow])
    assert.strictEqual(shadow.version, 44)
    assert.deepStrictEqual(
      Object.keys(shadow.reported).toSorted(),
      ["d", "e", ...Array.from({ length: 40 }, (_, i) => `w${i}`)].toSorted()
    )
  }).pipe(Effect.scoped))
