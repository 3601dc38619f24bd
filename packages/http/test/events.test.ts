import {
  call,
  createDevice,
  createProduct,
  type DeviceTriple,
  ownerKey,
  sign,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { AccessKeys, type DomainEvent, Feed, FeedStore, placeOf, ProjectId } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { assert, it as test, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Queue, type Scope } from "effect"
import { HttpServer } from "effect/http"
import { type IncomingMessage, request as httpRequest } from "node:http"
import { newDatabase, storages } from "../../../vitest.storages.ts"

interface ServerSentEvent {
  readonly id: string
  readonly event: string
  // oxlint-disable-next-line no-explicit-any -- a test looks into whatever came
  readonly data: any
}

/** Follows the stream until the scope closes. */
const follow = Effect.fnUntraced(function*(
  query = "",
  headers: Readonly<Record<string, string>> = {}
): Effect.fn.Return<Queue.Dequeue<ServerSentEvent>, never, HttpServer.HttpServer | Scope.Scope> {
  const { address } = yield* HttpServer.HttpServer
  const received = yield* Queue.unbounded<ServerSentEvent>()
  yield* Effect.acquireRelease(
    Effect.callback<IncomingMessage>((resume) => {
      const request = httpRequest(`${HttpServer.formatAddress(address)}/openapi/v1/events${query}`, {
        agent: false,
        headers: { authorization: `Bearer ${ownerKey}`, ...headers }
      }, (response) => {
        assert.strictEqual(response.statusCode, 200)
        assert.match(String(response.headers["content-type"]), /^text\/event-stream/)
        let text = ""
        response.on("error", () => {})
        response.on("data", (chunk) => {
          text += chunk
          const blocks = text.split("\n\n")
          text = blocks.pop()!
          for (const block of blocks) {
            const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s, 2)))
            // It is heard.
            if (fields["retry"] !== undefined) resume(Effect.succeed(response))
            if (fields["event"] === undefined) continue
            const { data, event, id = "" } = fields as Record<string, string>
            Queue.offerUnsafe(received, { id: id!, event: event!, data: JSON.parse(data!) })
          }
        })
      })
      request.on("error", () => {})
      request.end()
    }),
    (response) => Effect.sync(() => response.destroy())
  )
  return received
})

/** The id with which a stream begins. */
const beginningOf = Effect.fnUntraced(function*(query: string) {
  const { address } = yield* HttpServer.HttpServer
  return yield* Effect.promise(async (signal) => {
    const response = await fetch(`${HttpServer.formatAddress(address)}/openapi/v1/events${query}`, {
      headers: { authorization: `Bearer ${ownerKey}` },
      signal
    })
    const reader = response.body!.getReader()
    const text = new TextDecoder().decode((await reader.read()).value)
    await reader.cancel()
    return /^retry: 1000\nid: (\S+)\n\n/.exec(text)![1]!
  })
})

const take = (events: Queue.Dequeue<ServerSentEvent>, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => Queue.take(events))

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`events on ${name}`, (it) => {
    it.effect("are told as they happen, to their project, by what was asked for", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { product_key: other } = yield* createProduct()
        const all = yield* follow()
        const ofProduct = yield* follow(`?product_key=${product_key}&type=lifecycle,status`)
        const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
        const { key } =
          (yield* call("POST", "/access-keys", { body: { name: "k", role: "viewer", project_id } })).body.data
        const foreign = yield* follow("", { authorization: `Bearer ${key}` })
        yield* createDevice(other)
        const { device_id, device_name } = yield* createDevice(product_key)
        const ofDevice = yield* follow(`?device_id=${device_id}`)
        yield* call("PUT", `/things/${device_id}/status`, { body: { action: "bind" } })
        yield* call("PUT", `/things/${device_id}/status`, { body: { action: "disable" } })
        const told = yield* take(ofProduct, 3)
        assert.deepStrictEqual(told.map(({ data, event }) => [event, data.action, data.device_id]), [
          ["lifecycle", "create", device_id],
          ["lifecycle", "bind", device_id],
          ["lifecycle", "disable", device_id]
        ])
        assert.deepInclude(told[0]!.data, { product_key, device_name })
        assert.isAbove(told[0]!.data.time, 1e12)
        assert.deepStrictEqual((yield* take(all, 4)).map(({ data }) => data.action), [
          "create",
          "create",
          "bind",
          "disable"
        ])
        assert.deepStrictEqual((yield* take(ofDevice, 2)).map(({ id }) => id), told.slice(1).map(({ id }) => id))
        assert.strictEqual(yield* Queue.size(foreign), 0)
      }).pipe(Effect.scoped))

    it.effect("tell a key that is limited to products nothing of other devices, also of what it missed", () =>
      Effect.gen(function*() {
        const gateways = yield* createProduct({ node_type: "gateway" })
        const subs = yield* createProduct({
          node_type: "gateway-sub",
          network_type: undefined,
          protocol_type: "zigbee"
        })
        const gateway = (yield* createDevice(gateways.product_key)) as unknown as DeviceTriple
        const device = (yield* createDevice(subs.product_key)) as unknown as DeviceTriple & {
          readonly device_id: string
        }
        const { device_name: deviceName, product_key: productKey } = device
        const scene = yield* call("POST", "/rule-engine/scenes", {
          body: {
            name: `Of ${productKey}`,
            status: "enable",
            triggers: [{ URI: "trigger/device/status", params: { product_key: productKey, device_name: deviceName } }],
            actions: [{ URI: "action/device/property", params: { device_id: device.device_id, items: { n: 1 } } }]
          }
        })
        assert.strictEqual(scene.body.code, 0, scene.body.message)
        const keyOf = (product: string) =>
          Effect.map(
            call("POST", "/access-keys", { body: { name: "k", role: "viewer", scopes: { products: [product] } } }),
            ({ body }) => body.data.key as string
          )
        const ofSubs = yield* keyOf(productKey)
        const ofGateways = yield* keyOf(gateways.product_key)
        const all = yield* follow()
        const live = yield* follow(`?product_key=${productKey}`, { authorization: `Bearer ${ofSubs}` })
        const signed = `deviceName${deviceName}productKey${productKey}`
        const proof = {
          productKey,
          deviceName,
          signMethod: "hmacSha1",
          sign: yield* sign("hmacsha1", device.device_secret, signed)
        }
        for (const [method, params] of [["add", [proof]], ["login", proof]] as const) {
          const { body } = yield* uplink(gateway, "PostStarTopo", { query: { method }, body: { params } })
          assert.strictEqual(body.code, 0, body.message)
        }
        const shown: Array<ServerSentEvent> = []
        while (shown.at(-1)?.event !== "scene") shown.push(yield* Queue.take(all))
        assert.deepInclude(shown.find(({ event }) => event === "topology")!.data.sub_devices[0], {
          device_name: deviceName
        })
        assert.strictEqual(shown.at(-2)!.data.gateway.device_name, gateway.device_name)
        yield* call("PUT", `/things/${device.device_id}/status`, { body: { action: "bind" } })
        const missed = yield* follow(`?product_key=${productKey}&last_event_id=${shown[0]!.id}`, {
          authorization: `Bearer ${ofSubs}`
        })
        for (const events of [live, missed]) {
          const [status, bind] = yield* take(events, 2)
          assert.deepInclude(status!.data, { device_name: deviceName, status: "online", transport: "gateway" })
          assert.notProperty(status!.data, "gateway")
          assert.deepInclude(bind!.data, { device_name: deviceName, action: "bind" })
        }
        const { text } = yield* call("GET", `/things/${device.device_id}/presence`, { key: ofSubs })
        assert.include(text, `"online"`)
        assert.notInclude(text, gateway.device_name)
        const ofGateway = yield* follow(`?product_key=${gateways.product_key}&last_event_id=${shown[0]!.id}`, {
          authorization: `Bearer ${ofGateways}`
        })
        yield* call("DELETE", `/things/${device.device_id}`)
        const { device_id } = yield* createDevice(gateways.product_key)
        assert.strictEqual((yield* Queue.take(ofGateway)).data.device_id, device_id)
      }).pipe(Effect.scoped))

    it.effect("that were missed come first, in order and once", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `?product_key=${product_key}`
        const first = yield* Effect.scoped(Effect.gen(function*() {
          const events = yield* follow(path)
          for (let i = 0; i < 3; i++) yield* createDevice(product_key)
          return yield* take(events, 3)
        }))
        for (let i = 0; i < 5; i++) yield* createDevice(product_key)
        const resumed = yield* follow(path, { "last-event-id": first[1]!.id })
        yield* createDevice(product_key)
        const told = yield* take(resumed, 7)
        assert.deepStrictEqual(told[0], first[2])
        const ids = told.map(({ id }) => id)
        assert.deepStrictEqual(ids, [...new Set(ids)].toSorted())
        const asked = yield* follow(`${path}&last_event_id=${first[1]!.id}`)
        assert.deepStrictEqual(yield* take(asked, 7), told)
        const unknown = yield* follow(path, { "last-event-id": "somebody-5" })
        assert.strictEqual((yield* Queue.take(unknown)).event, "gap")
        // That of another cloud, which had more to tell.
        const foreign = yield* follow(path, {
          "last-event-id": placeOf({ transaction: 2 ** 52, sequence: 0, part: 1 })
        })
        assert.strictEqual((yield* Queue.take(foreign)).event, "gap")
        yield* createDevice(product_key)
        assert.strictEqual((yield* Queue.take(foreign)).event, "lifecycle")
        const begun = yield* follow(path, { "last-event-id": "" })
        yield* createDevice(product_key)
        assert.isTrue((yield* Queue.take(begun)).id > ids.at(-1)!)
      }).pipe(Effect.scoped))

    it.effect("go on where a stream began that has told none", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        yield* createDevice(product_key)
        const path = `?product_key=${product_key}`
        const place = yield* beginningOf(path)
        const { device_name } = yield* createDevice(product_key)
        const resumed = yield* follow(path, { "last-event-id": place })
        assert.strictEqual((yield* Queue.take(resumed)).data.device_name, device_name)
      }).pipe(Effect.scoped))

    it.effect("tell of scenes, those that no device has fired too", () =>
      Effect.gen(function*() {
        const events = yield* follow("?type=scene")
        const body = { name: `Told ${name}`, status: "enable" }
        const { id } = (yield* call("POST", "/rule-engine/scenes", { body })).body.data
        const { execution_id } = (yield* call("POST", `/rule-engine/scenes/${id}/actions`)).body.data
        const { data, event } = yield* Queue.take(events)
        const { time, ...rest } = data
        assert.isAbove(time, 1e12)
        assert.deepStrictEqual([event, rest], ["scene", {
          scene_id: id,
          scene_name: body.name,
          execution_id,
          status: "succeeded",
          reason: "It was run by hand"
        }])
      }).pipe(Effect.scoped))

    it.effect("tell of upgrades, with the numbers of the API", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const device = (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
        const { id } = (yield* call("POST", `/products/${product_key}/ota/firmwares`, {
          body: {
            name: "Told",
            version: "1.1.0",
            oss_path: "https://cloud.example.com/firmware.bin",
            algorithms: 1,
            hash: "93230c3bde425a9d7984a594ac55ea1e"
          }
        })).body.data
        const { task_id } =
          (yield* call("POST", `/ota/firmwares/${id}/upgrade-tasks`, { body: { scope_mode: 0 } })).body
            .data
        const events = yield* follow(`?product_key=${product_key}&type=upgrade`)
        for (const step of [40, -1]) {
          const params = { step, desc: "flash" }
          yield* uplink(device, "PostOTA", { body: { id: 1, method: "thing.ota.progress", params } })
        }
        const of = { device_id: device.device_id, task_id, module: "default", version: "1.1.0", reason: "flash" }
        for (const state of [{ status: 2, step: 40 }, { status: 4, step: -1 }]) {
          assert.deepInclude((yield* Queue.take(events)).data, { ...of, ...state })
        }
      }).pipe(Effect.scoped))

    it.effect("refuses filters that name nothing", () =>
      Effect.gen(function*() {
        const { body } = yield* call("GET", "/events?type=status,nothing")
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["type"]])
      }))
  })
}

/** Opens a stream. `ended`: the server has ended it. */
const open = Effect.fnUntraced(function*(key: string = ownerKey) {
  const { address } = yield* HttpServer.HttpServer
  const ended = yield* Deferred.make<void>()
  const response = yield* Effect.acquireRelease(
    Effect.callback<IncomingMessage>((resume) => {
      httpRequest(`${HttpServer.formatAddress(address)}/openapi/v1/events`, {
        agent: false,
        headers: { authorization: `Bearer ${key}` }
      }, (response) => {
        response.on("error", () => {})
        response.on("close", () => Deferred.doneUnsafe(ended, Effect.void))
        resume(Effect.succeed(response))
      }).end()
    }),
    (response) => Effect.sync(() => response.destroy())
  )
  return { response, ended: Deferred.await(ended) }
})

const newProject = Effect.map(
  call("POST", "/projects", { body: { name: "Other" } }),
  ({ body }) => ProjectId.make(body.data.id)
)

const newKey = (project_id: string, more: object = {}) =>
  Effect.map(
    call("POST", "/access-keys", { body: { name: "k", role: "viewer", project_id, ...more } }),
    ({ body }) => body.data as { readonly id: string; readonly key: string }
  )

/** An event of a project, which the store keeps as it is. Counts how often the project and the properties are read. */
const counted = (projectId: ProjectId, text: string) => {
  const reads = { project: 0, properties: 0 }
  const event = {
    _tag: "PropertiesReported",
    at: 1,
    device: {
      deviceId: "d",
      deviceName: "n",
      productKey: "p",
      get projectId() {
        reads.project++
        return projectId
      }
    },
    get properties() {
      reads.properties++
      return { text: { value: text, time: 1 } }
    },
    earlier: []
  } as unknown as DomainEvent
  return { event, reads }
}

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("streams of events", (it) => {
  it.effect("of a project share the bytes of an event; events of other projects cost them nothing", () =>
    Effect.gen(function*() {
      const feed = yield* Feed
      const project = yield* newProject
      const { key } = yield* newKey(project)
      const streams = yield* Effect.forEach(
        Array.from({ length: 20 }),
        (_, i) => follow(i % 2 === 0 ? "" : "?type=property", { authorization: `Bearer ${key}` })
      )
      const [own, foreign] = [counted(project, "own"), counted(ProjectId.make("elsewhere"), "foreign")]
      yield* feed.append([foreign.event, own.event])
      for (const stream of streams) {
        assert.strictEqual((yield* Queue.take(stream)).data.properties.text.value, "own")
      }
      // The store has read each of them twice: for the history, and to weigh it.
      assert.deepStrictEqual([own.reads.properties, foreign.reads.properties], [3, 2])
      assert.isAtMost(foreign.reads.project, 2)
    }).pipe(Effect.scoped))

  it.effect("of a client that does not read wait in the feed; others go on", () =>
    Effect.gen(function*() {
      const feed = yield* Feed
      const project = yield* newProject
      const { key } = yield* newKey(project)
      const reading = yield* follow("", { authorization: `Bearer ${key}` })
      const { response } = yield* open(key)
      // Far more than sockets and kernels keep.
      const count = 150
      const text = "x".repeat(200_000)
      for (let i = 0; i < count; i++) {
        yield* feed.append([counted(project, `${i} ${text}`).event])
        yield* Queue.take(reading)
      }
      yield* feed.append([counted(project, "last").event])
      assert.strictEqual((yield* Queue.take(reading)).data.properties.text.value, "last")
      const chunks: Array<string> = []
      yield* Effect.callback<void>((resume) => {
        response.on("data", (chunk) => {
          chunks.push(String(chunk))
          if (chunks.slice(-2).join("").includes(`"last"`)) resume(Effect.void)
        })
      })
      const received = chunks.join("")
      const told = [...received.matchAll(/"value":"(\d+|last)/g)].map(([, value]) => value)
      assert.deepStrictEqual(told, [...Array.from({ length: count }, (_, i) => String(i)), "last"])
      assert.notInclude(received, "event: gap")
    }).pipe(Effect.scoped))

  it.effect("end when their access key is removed or expires, also for a client that does not read", () =>
    Effect.gen(function*() {
      const feed = yield* Feed
      const project = yield* newProject
      const removed = yield* newKey(project)
      const expires_at = new Date(Date.now() + 1500).toISOString()
      const expiring = yield* newKey(project, { expires_at })
      const staying = yield* newKey(project)
      const streams = yield* Effect.forEach([removed, removed, expiring, staying], ({ key }) => open(key))
      const [first, stuck, expired, other] = streams as [Opened, Opened, Opened, Opened]
      for (const { response } of [first, expired, other]) response.resume()
      for (let i = 0; i < 400; i++) yield* feed.append([counted(project, "x".repeat(20_000)).event])
      assert.strictEqual((yield* call("DELETE", `/access-keys/${removed.id}`)).body.code, 40412)
      yield* (yield* AccessKeys).remove(project, removed.id)
      yield* first.ended
      yield* expired.ended
      stuck.response.resume()
      yield* stuck.ended
      assert.isFalse(other.response.destroyed || other.response.readableEnded)
      assert.strictEqual((yield* call("DELETE", `/projects/${project}`)).body.code, 0)
      yield* other.ended
    }).pipe(Effect.scoped))
})

type Opened = Effect.Success<ReturnType<typeof open>>

layer(testApi(StorageMemory.layer, { eventStreams: { project: 2, total: 3 } }), { excludeTestServices: true })(
  "the number of streams of events",
  (it) => {
    it.effect("is bounded for each project and in total", () =>
      Effect.gen(function*() {
        const { key } = yield* newKey(yield* newProject)
        const opened = [yield* open(), yield* open()]
        const { body, headers, status } = yield* call("GET", "/events")
        assert.deepStrictEqual([status, body.code], [429, 42900])
        assert.isAbove(Number(headers["retry-after"]), 0)
        yield* open(key)
        assert.strictEqual((yield* call("GET", "/events", { key })).body.code, 42900)
        opened[0]!.response.destroy()
        yield* eventually(open(), { until: ({ response }) => response.statusCode === 200 })
        assert.strictEqual((yield* call("GET", "/events")).body.code, 42900)
      }).pipe(Effect.scoped))
  }
)

test.live("events of one node are told on another, and goes on on whichever node comes back", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const storage = Layer.suspend(() => StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))
    const node = Layer.build(Layer.fresh(testApi(storage)))
    const two = yield* node
    const create = (productKey: string) => Effect.map(createDevice(productKey), ({ device_id }) => device_id)
    const { device_ids, last, productKey } = yield* Effect.scoped(Effect.gen(function*() {
      const one = yield* node
      const { product_key: productKey } = yield* Effect.provideContext(createProduct(), one)
      const here = yield* Effect.provideContext(follow(`?product_key=${productKey}`), one)
      const there = yield* Effect.provideContext(follow(`?product_key=${productKey}`), two)
      const created = [
        yield* Effect.provideContext(create(productKey), one),
        yield* Effect.provideContext(create(productKey), two),
        yield* Effect.provideContext(create(productKey), one)
      ]
      const [onOne, onTwo] = [yield* take(here, 3), yield* take(there, 3)]
      assert.deepStrictEqual(onOne, onTwo)
      assert.deepStrictEqual(onTwo.map(({ data }) => data.device_id), created)
      return { device_ids: created, last: onOne[0]!.id, productKey }
    }))
    // Both nodes are new: they share nothing with the first but the database.
    const missed = yield* Effect.provideContext(create(productKey), two)
    const three = yield* node
    for (const context of [two, three]) {
      const resumed = yield* Effect.provideContext(
        follow(`?product_key=${productKey}`, { "last-event-id": last }),
        context
      )
      assert.deepStrictEqual(
        (yield* take(resumed, 3)).map(({ data, event }) => [event, data.device_id]),
        [...device_ids.slice(1), missed].map((id) => ["lifecycle", id])
      )
    }
  }).pipe(Effect.scoped))

test.live("a client that was away for longer than events are kept is told", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const storage = StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))
    const node = yield* Layer.build(Layer.fresh(testApi(storage)))
    yield* Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const events = yield* follow()
      yield* createDevice(product_key)
      const { id } = yield* Queue.take(events)
      yield* createDevice(product_key)
      yield* Queue.take(events)
      const feed = yield* Feed
      const isForgotten = Effect.map(
        feed.read({ projectId: undefined, after: id, limit: 1 }),
        ({ isGap }) => isGap
      )
      const prune = FeedStore.use((store) => store.prune({ keepMillis: -1, maxBytes: 1e9, isHistoryApart: true }))
      yield* eventually(Effect.andThen(prune, isForgotten), { until: (isForgotten) => isForgotten })
      const resumed = yield* follow("", { "last-event-id": id })
      yield* createDevice(product_key)
      assert.deepStrictEqual((yield* take(resumed, 2)).map(({ event }) => event), ["gap", "lifecycle"])
    }).pipe(Effect.provideContext(node))
  }).pipe(Effect.scoped))

test.live("a stream ends when its access key is removed on another node", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const node = Layer.build(Layer.fresh(testApi(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))))
    const [one, two] = [yield* node, yield* node]
    const { id, key } = yield* Effect.provideContext(newKey("default"), one)
    const { ended, response } = yield* Effect.provideContext(open(key), two)
    response.resume()
    yield* Context.get(one, AccessKeys).remove(ProjectId.make("default"), id)
    yield* ended
  }).pipe(Effect.scoped))
