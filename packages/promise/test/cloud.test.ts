import {
  defaultProjectId,
  defineThingModel,
  type Device,
  type DeviceIdentity,
  type Json,
  SubscriptionStore,
  Uplink
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Effect, Layer } from "effect"
import { getEventListeners } from "node:events"
import { assert, expect, expectTypeOf, it, vi } from "vitest"
import { CloudError, type CloudEvent, type PromisedCloud, startCloud } from "../src/index.ts"

const parts = { storage: StorageMemory.layer, platform: PlatformNode.layer }

const lamp = {
  name: "Lamp",
  nodeType: "direct",
  networkType: "wifi",
  validateType: "weak",
  dataFormat: "json",
  authType: "secret"
} as const

const createLamp = async (cloud: PromisedCloud): Promise<Device> => {
  const { productKey } = await cloud.products.create("default", lamp)
  return cloud.devices.create("default", productKey, { nickname: "Desk" })
}

const report = (cloud: PromisedCloud, device: Device, properties: Readonly<Record<string, Json>>) =>
  cloud.uplink.submit({
    device: { ...device, validateType: "weak" } as DeviceIdentity,
    method: "thing.event.property.post",
    params: properties,
    receivedAt: Date.now()
  })

const rejected = async (promise: Promise<unknown>): Promise<CloudError> => {
  const error = await promise.then(() => assert.fail("the call is not rejected"), (error: unknown) => error)
  assert(error instanceof CloudError)
  return error
}

it("devices are created, report and are read with promises, and ids are plain text", async () => {
  await using cloud = await startCloud(parts)
  const device = await createLamp(cloud)
  assert.strictEqual((await report(cloud, device, { power: 1 })).code, 200)
  const { shadow } = await cloud.shadows.get("default", device.deviceId as string)
  assert.strictEqual(shadow.reported["power"]?.value, 1)
})

it("a failure rejects with its code, the fields of the error of the domain, and the error as cause", async () => {
  await using cloud = await startCloud(parts)
  const error = await rejected(cloud.devices.get("default", { deviceId: "nowhere" }))
  assert(error.code === "DeviceNotFound")
  expectTypeOf(error.device).toEqualTypeOf<string>()
  // @ts-expect-error a missing device has no issues
  void error.issues
  assert.strictEqual(error.device, "nowhere")
  assert.strictEqual(error._tag, "DeviceNotFound")
  assert.strictEqual(error.message, "There is no device nowhere")
  assert.strictEqual((error.cause as Error).constructor.name, "DeviceNotFound")

  const invalid = await rejected(cloud.products.create("default", { ...lamp, name: "" }))
  assert(invalid.code === "InvalidInput")
  assert.deepStrictEqual(invalid.issues[0].path, ["name"])
})

it("an id of another type, which a program without types may give, is refused by name", async () => {
  await using cloud = await startCloud(parts)
  const { productKey } = await cloud.products.create("default", lamp)
  const error = await rejected(cloud.batches.get("default", productKey, "12" as never))
  assert.strictEqual(error.code, "SchemaError")
  assert.match(error.message, /Expected number\s+at \["batchId"\]/)
  const events = cloud.subscribe("lamps", { projectId: 12 as never })[Symbol.asyncIterator]()
  const loop = await rejected(events.next())
  assert.strictEqual(loop.code, "SchemaError")
  assert.match(loop.message, /Expected string\s+at \["projectId"\]/)
})

it("a value that is no JSON is refused by name, and nothing of it is stored", async () => {
  await using cloud = await startCloud(parts)
  const { deviceId } = await createLamp(cloud)
  class Level {
    value = 1
  }
  for (const value of [1n, () => 1, Symbol("level"), new Date(0), new Map(), new Level(), undefined]) {
    for (const given of [value, [value], { value }] as ReadonlyArray<unknown>) {
      const values = { level: given as Json }
      const desired = await rejected(cloud.shadows.desire("default", deviceId, values))
      assert(desired.code === "InvalidInput")
      assert.deepStrictEqual(desired.issues[0].path, ["state", "desired", "level"])
      const set = await rejected(cloud.commands.setProperties("default", deviceId, values))
      assert(set.code === "InvalidInput")
      assert.deepStrictEqual(set.issues[0].path, ["params"])
    }
  }
  const plain = Object.assign(Object.create(null), { level: { value: [1] } }) as Record<string, Json>
  const { desired } = await cloud.shadows.desire("default", deviceId, plain)
  assert.deepStrictEqual(desired["level"]?.value, { value: [1] })
})

it("types: calls that do not fit are refused, and extension points are left out", async () => {
  await using cloud = await startCloud(parts)
  expectTypeOf(cloud.devices.list).returns.resolves.toHaveProperty("total").toEqualTypeOf<number>()
  expectTypeOf(cloud.signingKeys.get).returns.resolves.extract<undefined>().toEqualTypeOf<undefined>()
  expectTypeOf(cloud.accessKeys.generate).toEqualTypeOf<() => Promise<string>>()
  // @ts-expect-error a hook of the lifecycle needs a scope
  void cloud.deviceLifecycle.register
  // @ts-expect-error a product needs a name
  await rejected(cloud.products.create("default", { ...lamp, name: undefined }))
  // @ts-expect-error a cloud without objects has no API
  assert.isUndefined(cloud.fetchHandler)
})

it("an Option is its value or undefined, and a Redacted is its value", async () => {
  await using cloud = await startCloud(parts)
  const { productKey } = await cloud.products.create(defaultProjectId, lamp)
  assert.isUndefined(await cloud.signingKeys.get("default", productKey))
  const { accessKey, key } = await cloud.accessKeys.create("default", { name: "Back end", role: "viewer" })
  assert.match(key, /^dck_/)
  assert.strictEqual(accessKey.name, "Back end")
  assert.match(await cloud.accessKeys.generate(), /^dck_/)
})

it("the API says what is wrong with a body, also of a request that was made in this process", async () => {
  await using cloud = await startCloud({ ...parts, objects: PlatformNode.MemoryObjectStore.layer })
  const handle = await cloud.fetchHandler()
  const { key } = await cloud.accessKeys.create("default", { name: "Back end", role: "admin" })
  const create = async (body: string | null) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const response = await handle(
      new Request("http://localhost/openapi/v1/products", { method: "POST", headers, body })
    )
    return await response.json() as { readonly code: number; readonly message: string; readonly data?: Json }
  }
  const wrong = await create("{\"name\":5}")
  assert.strictEqual(wrong.code, 40001)
  assert.nestedProperty(wrong.data, "issues.name")
  assert.strictEqual((await create("{")).message, "The body is not valid JSON")
  for (const body of ["", null]) {
    assert.deepStrictEqual(await create(body), { code: 40000, message: "The body is empty; send a JSON object" })
  }
})

it("an API with a limit that is none does not start, and says why", async () => {
  await using cloud = await startCloud({ ...parts, objects: PlatformNode.MemoryObjectStore.layer })
  const error = await rejected(cloud.fetchHandler({ rateLimits: { project: "often" } }))
  assert.strictEqual(error.code, "InvalidRateLimit")
  assert.strictEqual(error.message, "project: expected count:seconds like 20:1,600:60, not often")
})

it("closing responds to requests that have no response yet, and rejects others", async () => {
  const cloud = await startCloud({ ...parts, objects: PlatformNode.MemoryObjectStore.layer })
  const handle = await cloud.fetchHandler()
  const { key } = await cloud.accessKeys.create("default", { name: "Back end", role: "admin" })
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  let request: Promise<Response> | undefined
  await new Promise<void>((reads) => {
    // A client that stops in the middle: the API asks for more.
    const body = new ReadableStream({ pull: () => reads() }, { highWaterMark: 0 })
    const address = "http://localhost/openapi/v1/products"
    request = handle(new Request(address, { method: "POST", headers, body, duplex: "half" }))
  })
  await cloud.close()
  assert.strictEqual((await request!).status, 503)
  await expect(handle(new Request("http://localhost/healthz"))).rejects.toThrow("The cloud is closed")
})

it("a stream is an async iterable", async () => {
  await using cloud = await startCloud(parts)
  const { productKey } = await cloud.products.create("default", lamp)
  const seen: Array<string> = []
  const events = cloud.feed.stream({ projectId: defaultProjectId, after: "" })[Symbol.asyncIterator]()
  await cloud.devices.create("default", productKey, {})
  const { value } = await events.next()
  if (value !== undefined) seen.push(value.event._tag)
  await events.return?.()
  assert.deepStrictEqual(seen, ["DeviceLifecycle"])
})

it("a subscription gives events again until the loop asks for the next one", async () => {
  await using cloud = await startCloud(parts)
  const device = await createLamp(cloud)
  const options = { filter: { kinds: ["PropertiesReported"] }, start: "earliest" } as const
  for (const power of [1, 2, 3]) await report(cloud, device, { power })

  const powers = async (until: number): Promise<Array<Json | undefined>> => {
    const seen: Array<Json | undefined> = []
    for await (const event of cloud.subscribe("lamps", options)) {
      assert(event.type === "property")
      expectTypeOf(event.data.device_id).toEqualTypeOf<string>()
      seen.push(event.data.properties["power"]?.value)
      if (seen.length === until) break
    }
    return seen
  }
  assert.deepStrictEqual(await powers(2), [1, 2])
  assert.deepStrictEqual(await powers(2), [2, 3])
  const waiting = powers(2)
  await report(cloud, device, { power: 4 })
  assert.deepStrictEqual(await waiting, [3, 4])
})

it("an error in the loop leaves its event for the next one", async () => {
  await using cloud = await startCloud(parts)
  const device = await createLamp(cloud)
  await report(cloud, device, { power: 1 })
  const take = async (act: (event: CloudEvent) => void) => {
    for await (
      const event of cloud.subscribe("lamps", { start: "earliest", filter: { kinds: ["PropertiesReported"] } })
    ) {
      act(event)
      return event.id
    }
  }
  const ids: Array<string> = []
  await expect(take((event) => {
    ids.push(event.id)
    throw new Error("The lamp is broken")
  })).rejects.toThrow("The lamp is broken")
  assert.strictEqual(await take(() => undefined), ids[0])
})

it("devices of a typed model have its types", async () => {
  const heater = defineThingModel({
    properties: [
      { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool" } },
      { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "double" } }
    ],
    services: [
      { id: "heat", name: "Heat", inputData: [{ id: "minutes", name: "Minutes", dataType: { type: "int" } }] }
    ]
  })
  await using cloud = await startCloud(parts)
  const device = await createLamp(cloud)
  await cloud.thingModels.importFrom("default", device.productKey, "metadata", JSON.stringify(heater.definition))
  const heaters = cloud.typed(heater)
  const deviceId = String(device.deviceId)

  await report(cloud, device, { temperature: 21 })
  const { reported } = await heaters.shadow("default", deviceId)
  expectTypeOf(reported.temperature).toEqualTypeOf<{ readonly value: number; readonly time: number } | undefined>()
  assert.strictEqual(reported.temperature?.value, 21)
  assert.deepStrictEqual((await heaters.setProperties("default", deviceId, { power: true })).command.params, {
    power: 1
  })
  assert.strictEqual((await heaters.services.heat("default", deviceId, { minutes: 5 })).command.serviceId, "heat")
  // @ts-expect-error it is read-only
  const refused = await rejected(heaters.setProperties("default", deviceId, { temperature: 20 }))
  assert.strictEqual(refused.code, "InvalidValues")
  // @ts-expect-error an input has another type
  await rejected(heaters.services.heat("default", deviceId, { minutes: "5" }))
  // @ts-expect-error there is no such service
  assert.isUndefined(heaters.services.cool)
})

it("an aborted signal ends calls and loops with its reason", async () => {
  await using cloud = await startCloud(parts)
  const controller = new AbortController()
  const aborted = cloud.withSignal(controller.signal)
  const next = aborted.subscribe("lamps")[Symbol.asyncIterator]().next()
  const reason = new Error("Enough")
  controller.abort(reason)
  await expect(next).rejects.toBe(reason)
  await expect(aborted.projects.get("default")).rejects.toBe(reason)
  assert.strictEqual((await cloud.projects.get("default")).id, defaultProjectId)
})

it("what is no signal is refused at once, which a program without types may give", async () => {
  await using cloud = await startCloud(parts)
  for (const given of [new AbortController(), "x", null, undefined]) {
    assert.throws(() => cloud.withSignal(given as never), TypeError, /^signal: expected an AbortSignal/)
  }
})

/** Lists subscriptions as storage elsewhere does: others go on meanwhile. */
const listsLater = Layer.effect(
  SubscriptionStore,
  Effect.map(SubscriptionStore, (store) =>
    SubscriptionStore.of({
      ...store,
      list: (projectId, page) => Effect.tap(store.list(projectId, page), Effect.sleep("5 millis"))
    }))
)

it("loops that begin at the same moment read one subscription", async () => {
  await using cloud = await startCloud({ ...parts, storage: Layer.provideMerge(listsLater, StorageMemory.layer) })
  const controller = new AbortController()
  const loops = ["a", "b", "c"].map((worker) =>
    cloud.withSignal(controller.signal).subscribe("shared", { worker })[Symbol.asyncIterator]().next()
  )
  const ends = Promise.allSettled(loops)
  await vi.waitUntil(async () => {
    const { items: [shared] } = await cloud.subscriptions.list("default", { page: 1, pageSize: 1 })
    if (shared === undefined) return false
    return (await cloud.subscriptions.get("default", shared.subscriptionId)).progress.workers.length === loops.length
  }, { timeout: 30_000 })
  const reason = new Error("Enough")
  controller.abort(reason)
  assert.deepStrictEqual(await ends, loops.map(() => ({ status: "rejected", reason })))
})

it("a loop that one signal ends is forgotten by the others", async () => {
  await using cloud = await startCloud(parts)
  const [kept, ended] = [new AbortController(), new AbortController()]
  const next = cloud.withSignal(kept.signal).withSignal(ended.signal).subscribe("loop")[Symbol.asyncIterator]().next()
  await vi.waitUntil(() => getEventListeners(kept.signal, "abort").length === 1)
  ended.abort()
  await next.catch(() => {})
  assert.lengthOf(getEventListeners(kept.signal, "abort"), 0)
})

it("Node.js does not warn of the listeners of many calls and loops at once", async () => {
  const warnings: Array<string> = []
  const note = ({ name }: Error) => warnings.push(name)
  process.on("warning", note)
  const cloud = await startCloud(parts)
  const { signal } = new AbortController()
  const loops = Array.from({ length: 11 }, (_, i) => cloud.subscribe(`${i}`)[Symbol.asyncIterator]().next())
  const signalled = Array.from(
    { length: 11 },
    (_, i) => cloud.withSignal(signal).subscribe(`${i}s`)[Symbol.asyncIterator]().next()
  )
  const ends = Promise.allSettled([...loops, ...signalled])
  await vi.waitUntil(async () => (await cloud.subscriptions.list("default", { page: 1, pageSize: 1 })).total === 22)
  await cloud.close()
  assert.isTrue((await ends).every(({ status }) => status === "rejected"))
  process.off("warning", note)
  assert.deepStrictEqual(warnings, [])
})

it("closing ends what runs on the cloud and its loops", async () => {
  const stopped: Array<string> = []
  const server = Layer.effectDiscard(
    Uplink.use(() => Effect.addFinalizer(() => Effect.sync(() => stopped.push("server"))))
  )
  const cloud = await startCloud({ ...parts, servers: [server] })
  const next = cloud.subscribe("lamps")[Symbol.asyncIterator]().next()
  await Promise.all([cloud.close(), expect(next).rejects.toThrow("The cloud is closed")])
  assert.deepStrictEqual(stopped, ["server"])
  await expect(cloud.projects.get("default")).rejects.toThrow("The cloud is closed")
  await cloud.close()
})

it("closing while the cloud closes resolves when it has ended", async () => {
  let hasEnded = false
  const slow = Layer.effectDiscard(Effect.addFinalizer(() =>
    Effect.promise(async () => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      hasEnded = true
    })
  ))
  const cloud = await startCloud({ ...parts, servers: [slow] })
  const first = cloud.close()
  await cloud.close()
  assert.isTrue(hasEnded)
  await first
})

it("a part that cannot start rejects with its failure", async () => {
  const failing = Layer.effectDiscard(Effect.fail({ _tag: "ListenError", message: "Port 1883 is taken" }))
  await expect(startCloud({ ...parts, servers: [failing] })).rejects.toMatchObject({
    code: "ListenError",
    message: "Port 1883 is taken"
  })
})

it("a part that is no layer is refused by name, which a program without types may give", async () => {
  const { platform, storage } = parts
  const wrong: ReadonlyArray<readonly [unknown, RegExp]> = [
    [{}, /^storage: Expected a layer/],
    [{ storage: StorageMemory, platform }, /^storage: Expected a layer/],
    [{ storage, platform: null }, /^platform: Expected a layer/],
    [{ storage, platform, objects: {} }, /^objects: Expected a layer/],
    [{ storage, platform, servers: Layer.empty }, /^servers: Expected an array of layers/],
    [{ storage, platform, servers: [Layer.empty, () => Layer.empty] }, /^servers\[1\]: Expected a layer/]
  ]
  for (const [given, reason] of wrong) {
    const error: unknown = await startCloud(given as typeof parts).catch((error: unknown) => error)
    assert.instanceOf(error, TypeError)
    assert.match((error as TypeError).message, reason)
  }
})
