import {
  AccessKeys,
  Commands,
  defaultProjectId,
  type Device,
  DeviceCloud,
  DeviceId,
  DeviceLifecycle,
  Devices,
  DeviceSessions,
  Feed,
  NodeBus,
  type ProductDraft,
  ProductKey,
  Products,
  ProductStore,
  ProjectId,
  Projects,
  Shadows,
  SignMethod,
  Uplink
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, TestCloud } from "@device-cloud/testing"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Queue, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"

const validDraft = Fixtures.productDraft({ validateType: "none" })

const read = ({ deviceId, projectId }: Device) =>
  Effect.flatMap(Devices, (devices) => Effect.map(devices.get(projectId, { deviceId }), ({ device }) => device))

layer(TestCloud.layer)("the whole cloud in memory", (it) => {
  it.effect("a device connects, reports, and is seen at once", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      yield* TestClock.setTime(5000)
      const device = yield* cloud.createDevice()
      assert.deepStrictEqual([device.status, device.activatedAt], ["unactive", null])

      const simulated = yield* cloud.connect(device)
      const reply = yield* simulated.postProperties({ temperature: 21.5, mode: { value: "eco", time: 4000 } })
      assert.deepStrictEqual(reply, { code: 200, message: "success", data: {} })

      const seen = yield* (yield* Shadows).get(defaultProjectId, device.deviceId)
      assert.deepStrictEqual(seen.shadow.reported, {
        temperature: { value: 21.5, time: 5000 },
        mode: { value: "eco", time: 4000 }
      })
      assert.deepStrictEqual([seen.device.status, seen.device.activatedAt], ["online", 5000])

      yield* TestClock.adjust("1 minute")
      yield* simulated.disconnect
      const { status, statusChangedAt, statusVersion } = yield* read(device)
      assert.deepStrictEqual([status, statusChangedAt, statusVersion], ["offline", 65_000, 2])
    }))

  it.effect("accepts every sign method, and no other signature", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const device = yield* cloud.createDevice()
      for (const signMethod of SignMethod.literals) {
        yield* Effect.scoped(cloud.connect(device, { signMethod }))
      }
      const wrong = yield* Effect.flip(cloud.connect(device, { deviceSecret: "x".repeat(32) }))
      assert.strictEqual(wrong._tag, "WrongSignature")
      const stranger = { ...device, productKey: ProductKey.make("missing") }
      assert.strictEqual((yield* Effect.flip(cloud.connect(stranger)))._tag, "DeviceNotFound")
    }))

  it.effect("has one session per device: the later one replaces the earlier one without an offline between", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const device = yield* cloud.createDevice()
      const statuses = yield* statusesOf(device)
      const first = yield* cloud.connect(device)
      const second = yield* cloud.connect(device)
      assert.strictEqual(yield* first.closed, "replaced")
      yield* first.disconnect
      assert.strictEqual((yield* read(device)).status, "online")
      yield* second.disconnect
      assert.deepStrictEqual(yield* Queue.takeN(statuses, 2), [
        { status: "online", version: 1 },
        { status: "offline", version: 2 }
      ])
      assert.strictEqual(yield* Queue.size(statuses), 0)
    }))

  it.effect("cuts off a device that is disabled, tells it before, and lets it in again when it is enabled", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const devices = yield* Devices
      const device = yield* cloud.createDevice()
      const simulated = yield* cloud.connect(device)
      yield* devices.disable(defaultProjectId, device.deviceId)
      assert.strictEqual((yield* Queue.take(simulated.received)).method, "thing.disable")
      assert.strictEqual(yield* simulated.closed, "disabled")
      assert.deepStrictEqual((yield* read(device)).status, "offline")
      assert.strictEqual((yield* Effect.flip(cloud.connect(device)))._tag, "DeviceDisabled")
      yield* devices.enable(defaultProjectId, device.deviceId)
      yield* cloud.connect(device)
      assert.deepStrictEqual((yield* read(device)).status, "online")
    }))

  it.effect("cuts off a device that is disabled, also if a hook throws or returns no effect", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const devices = yield* Devices
      const lifecycle = yield* DeviceLifecycle
      const hooks = [
        () => {
          throw new Error("broken")
        },
        async () => {}
      ] as ReadonlyArray<() => unknown> as ReadonlyArray<() => never>
      for (const disabled of hooks) {
        const device = yield* cloud.createDevice()
        const simulated = yield* cloud.connect(device)
        const exit = yield* Effect.scoped(Effect.andThen(
          lifecycle.register({ stage: "access", disabled }),
          Effect.exit(devices.disable(defaultProjectId, device.deviceId))
        ))
        assert.isTrue(Exit.hasDies(exit))
        assert.strictEqual(yield* simulated.closed, "disabled")
      }
    }))

  it.effect("keeps a device if a hook results in no handler for its deletion", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const devices = yield* Devices
      const lifecycle = yield* DeviceLifecycle
      const device = yield* cloud.createDevice()
      const exit = yield* Effect.scoped(Effect.andThen(
        lifecycle.register({ stage: "feature", deleting: () => Effect.void as Effect.Effect<never> }),
        Effect.exit(devices.remove(defaultProjectId, device.deviceId))
      ))
      assert.isTrue(Exit.hasDies(exit))
      assert.strictEqual((yield* read(device)).deviceName, device.deviceName)
    }))

  it.effect("cuts off a device that is deleted and answers its last words", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const devices = yield* Devices
      const device = yield* cloud.createDevice()
      const simulated = yield* cloud.connect(device)
      const { connection } = (yield* DeviceSessions).session(device.deviceId)!
      yield* devices.remove(defaultProjectId, device.deviceId)
      assert.strictEqual(yield* simulated.closed, "deleted")
      // What the device had said when its connection ended.
      const lastWords = { method: "thing.event.property.post", params: { a: 1 }, receivedAt: 0 }
      const reply = yield* (yield* Uplink).submit({ device: connection.device, ...lastWords })
      assert.strictEqual(reply.code, 6100)
      assert.strictEqual((yield* Effect.flip(cloud.connect(device)))._tag, "DeviceNotFound")
      assert.strictEqual((yield* Effect.flip(read(device)))._tag, "DeviceNotFound")
    }))

  it.effect("forgets what is desired of a device that is unbound", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const devices = yield* Devices
      const device = yield* cloud.createDevice()
      yield* devices.bind(defaultProjectId, device.deviceId)
      assert.isTrue((yield* read(device)).bound)
      yield* devices.unbind(defaultProjectId, device.deviceId)
      assert.isFalse((yield* read(device)).bound)
    }))

  it.effect("answers messages in order, and those it cannot use with the protocol's codes", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const simulated = yield* cloud.connect(yield* cloud.createDevice())
      const tooMany = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`p${i}`, i]))
      const codes = yield* Effect.forEach(
        [
          ["thing.event.property.post", { a: 1 }],
          ["thing.event.property.post", "text"],
          ["thing.event.property.post", [1]],
          ["thing.event.property.post", null],
          ["thing.event.property.post", tooMany],
          ["thing.no.such.method", {}]
        ] as const,
        ([method, params]) => Effect.map(simulated.send(method, params), ({ code }) => code),
        {
          concurrency: "unbounded"
        }
      )
      assert.deepStrictEqual(codes, [200, 460, 460, 460, 6106, 6203])
    }))

  it.effect("takes a wrapped value only for what it is", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      yield* TestClock.setTime(7000)
      const device = yield* cloud.createDevice()
      const simulated = yield* cloud.connect(device)
      yield* simulated.postProperties(JSON.parse(`{
        "wrapped": {"value": 1, "time": 6000},
        "untimed": {"value": 2},
        "struct": {"value": 3, "unit": "C"},
        "odd": {"value": 4, "time": "6000"},
        "negative": {"value": 5, "time": -1},
        "__proto__": {"value": 6},
        "nothing": null
      }`))
      const { shadow } = yield* (yield* Shadows).get(defaultProjectId, device.deviceId)
      assert.deepStrictEqual(shadow.reported, {
        wrapped: { value: 1, time: 6000 },
        untimed: { value: 2, time: 7000 },
        struct: { value: { value: 3, unit: "C" }, time: 7000 },
        odd: { value: { value: 4, time: "6000" }, time: 7000 },
        negative: { value: { value: 5, time: -1 }, time: 7000 },
        nothing: { value: null, time: 7000 }
      })
    }))

  it.effect("publishes what happened, after it was stored", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const feed = yield* Feed
      const after = yield* feed.end
      const seen = yield* feed.stream({ projectId: undefined, after }).pipe(
        Stream.take(4),
        Stream.map(({ event }) => event),
        Stream.runCollect,
        Effect.forkChild
      )
      const device = yield* cloud.createDevice()
      const simulated = yield* cloud.connect(device)
      yield* simulated.postProperties({ a: 1 })
      yield* simulated.disconnect
      const kinds = (yield* Fiber.join(seen)).map((event) =>
        event._tag === "DeviceStatusChanged" ? event.status : event._tag
      )
      assert.deepStrictEqual(kinds, ["DeviceLifecycle", "online", "PropertiesReported", "offline"])
    }))

  it.effect("a device itself may name the device, also without its id", () =>
    Effect.gen(function*() {
      const device = yield* (yield* TestCloud).createDevice()
      const devices = yield* Devices
      const { deviceId: _, ...named } = device
      assert.isNull(device.activatedAt)
      for (const reference of [device, named]) {
        assert.deepStrictEqual((yield* devices.get(defaultProjectId, reference)).device, device)
      }
    }))

  it.effect("there is no device whose id is no text", () =>
    Effect.gen(function*() {
      const devices = yield* Devices
      const commands = yield* Commands
      const shadows = yield* Shadows
      for (const deviceId of [undefined, null, 5, {}, []] as ReadonlyArray<unknown> as ReadonlyArray<DeviceId>) {
        const attempts: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
          devices.get(defaultProjectId, { deviceId }),
          devices.enable(defaultProjectId, deviceId),
          devices.remove(defaultProjectId, deviceId),
          commands.setProperties(defaultProjectId, deviceId, { power: 1 }),
          shadows.get(defaultProjectId, deviceId)
        ]
        for (const attempt of attempts) {
          const refused = yield* Effect.flip(attempt)
          assert.deepInclude(refused, { _tag: "DeviceNotFound", device: String(deviceId) })
        }
      }
    }))

  it.effect("keeps the projects apart", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const products = yield* Products
      const devices = yield* Devices
      const other = yield* (yield* Projects).create({ name: "Other" })
      const product = yield* cloud.createProduct()
      const device = yield* cloud.createDevice(product)
      const { productKey } = product
      const { deviceId, deviceName } = device
      const attempts = [
        products.get(other.id, productKey),
        products.update(other.id, productKey, { name: "X", dynamicRegister: true, photoUrl: "" }),
        products.setStatus(other.id, productKey, "released"),
        products.remove(other.id, productKey),
        devices.create(other.id, productKey, {}),
        devices.get(other.id, { deviceId }),
        devices.get(other.id, { productKey, deviceName }),
        devices.enable(other.id, deviceId),
        devices.disable(other.id, deviceId),
        devices.bind(other.id, deviceId),
        devices.unbind(other.id, deviceId),
        devices.remove(other.id, deviceId),
        Effect.flatMap(Shadows, (shadows) => shadows.get(other.id, deviceId))
      ]
      for (const attempt of attempts) {
        assert.include(
          ["ProductNotFound", "DeviceNotFound"],
          (yield* Effect.flip(attempt as Effect.Effect<unknown, { _tag: string }>))._tag
        )
      }
      assert.deepStrictEqual(yield* products.get(defaultProjectId, productKey), product)
      assert.deepStrictEqual(yield* read(device), device)
    }))

  it.effect.each<readonly [string, object, ReadonlyArray<string>]>([
    ["a direct device without network type", { networkType: undefined }, ["networkType"]],
    ["a direct device with a protocol type", { protocolType: "zigbee" }, ["protocolType"]],
    ["a sub-device with a network type", { nodeType: "gateway-sub", protocolType: "ble" }, ["networkType"]],
    ["a sub-device without protocol type", { nodeType: "gateway-sub", networkType: "" }, ["protocolType"]],
    ["a gateway with a protocol type", { nodeType: "gateway", protocolType: "ble-mesh" }, ["protocolType"]],
    ["a blank name", { name: " \t" }, ["name"]],
    ["several things at once", { name: 5, nodeType: "x", dynamicRegister: "yes" }, [
      "name",
      "nodeType",
      "dynamicRegister"
    ]]
  ])("refuses a product with %s", ([, fields, paths]) =>
    Effect.gen(function*() {
      const draft = { ...validDraft, ...fields } as ProductDraft
      const error = yield* Effect.flip((yield* Products).create(defaultProjectId, draft))
      assert.strictEqual(error._tag, "InvalidInput")
      if (error._tag === "InvalidInput") assert.deepStrictEqual(error.issues.map(({ path }) => path.join(".")), paths)
    }))

  it.effect("refuses cloud-gateway fields on another product, and unknown products", () =>
    Effect.gen(function*() {
      const devices = yield* Devices
      const { productKey } = yield* (yield* TestCloud).createProduct()
      const error = yield* Effect.flip(devices.create(defaultProjectId, productKey, { clientid: "c", password: "" }))
      assert.strictEqual(error._tag, "NotACloudGateway")
      const missing = yield* Effect.flip(devices.create(defaultProjectId, ProductKey.make("missing"), {}))
      assert.strictEqual(missing._tag, "ProductNotFound")
    }))

  it.effect("knows access keys by their hash, until they expire or are deleted", () =>
    Effect.gen(function*() {
      const accessKeys = yield* AccessKeys
      yield* TestClock.setTime(1000)
      const draft = { name: "ci", role: "viewer", expiresAt: 61_000 } as const
      const { accessKey, key } = yield* accessKeys.create(defaultProjectId, draft)
      assert.match(Redacted.value(key), /^dck_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{43}$/)
      assert.notInclude(JSON.stringify(accessKey), Redacted.value(key).slice(17))
      const { addresses, expiresAt, name, projectId, role, scopes } = accessKey
      const principal = {
        accessKeyId: accessKey.id,
        accessKeyName: name,
        projectId,
        role,
        scopes,
        addresses,
        expiresAt
      }
      assert.deepStrictEqual(yield* accessKeys.authenticate(key), principal)
      const forged = Redacted.make(Redacted.value(key).slice(0, -1) + (Redacted.value(key).endsWith("A") ? "B" : "A"))
      assert.strictEqual((yield* Effect.flip(accessKeys.authenticate(forged)))._tag, "UnknownAccessKey")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Effect.flip(accessKeys.authenticate(key)))._tag, "AccessKeyExpired")
      yield* accessKeys.remove(defaultProjectId, accessKey.id)
      assert.strictEqual((yield* Effect.flip(accessKeys.authenticate(key)))._tag, "UnknownAccessKey")
    }))

  it.effect("has one owner key, and makes no key for a project that does not exist", () =>
    Effect.gen(function*() {
      const accessKeys = yield* AccessKeys
      const owner = (character: string) => Redacted.make(`dck_${character.repeat(12)}_${character.repeat(43)}`)
      yield* accessKeys.setOwner(owner("a"))
      yield* accessKeys.setOwner(owner("b"))
      assert.strictEqual((yield* Effect.flip(accessKeys.authenticate(owner("a"))))._tag, "UnknownAccessKey")
      assert.strictEqual((yield* accessKeys.authenticate(owner("b"))).role, "owner")
      const malformed = yield* Effect.flip(accessKeys.setOwner(Redacted.make("dck_short_key")))
      assert.strictEqual(malformed._tag, "MalformedAccessKey")
      const draft = { name: "x", role: "admin" } as const
      const nowhere = yield* Effect.flip(accessKeys.create(ProjectId.make("missing"), draft))
      assert.strictEqual(nowhere._tag, "ProjectNotFound")
    }))

  it.effect("creates no product in a project that is not there", () =>
    Effect.gen(function*() {
      const failure = yield* Effect.flip((yield* Products).create(ProjectId.make("missing"), validDraft))
      assert.strictEqual(failure._tag, "ProjectNotFound")
    }))

  it.effect("deletes neither the default project nor one with products", () =>
    Effect.gen(function*() {
      const projects = yield* Projects
      const products = yield* Products
      assert.strictEqual((yield* Effect.flip(projects.remove(defaultProjectId)))._tag, "ProjectNotRemovable")
      const project = yield* projects.create({ name: "Short-lived" })
      const { productKey } = yield* products.create(project.id, validDraft)
      assert.strictEqual((yield* Effect.flip(projects.remove(project.id)))._tag, "ProjectNotRemovable")
      yield* products.remove(project.id, productKey)
      yield* projects.remove(project.id)
      assert.strictEqual((yield* Effect.flip(projects.get(project.id)))._tag, "ProjectNotFound")
      assert.strictEqual(
        (yield* Effect.flip((yield* Devices).get(project.id, { deviceId: DeviceId.make("x") })))._tag,
        "DeviceNotFound"
      )
    }))
})

/** The status events of one device from now on. */
const statusesOf = Effect.fnUntraced(function*(device: Device) {
  const feed = yield* Feed
  const after = yield* feed.end
  const queue = yield* Queue.unbounded<{ readonly status: string; readonly version: number }>()
  yield* Effect.forkScoped(
    Stream.runForEach(
      feed.stream({ projectId: undefined, after }),
      ({ event }) =>
        event._tag === "DeviceStatusChanged" && event.device.deviceId === device.deviceId
          ? Queue.offer(queue, { status: event.status, version: event.version })
          : Effect.void
    )
  )
  yield* Effect.yieldNow
  return queue
})

it.effect("gives every cloud a database of its own", () =>
  Effect.gen(function*() {
    const create = Effect.gen(function*() {
      yield* (yield* TestCloud).createProduct()
      return (yield* (yield* Products).list(defaultProjectId, { page: 1, pageSize: 10 })).total
    })
    assert.strictEqual(yield* Effect.provide(create, TestCloud.layer), 1)
    assert.strictEqual(yield* Effect.provide(create, TestCloud.layer), 1)
    assert.isTrue(Exit.isSuccess(yield* Effect.exit(Effect.provide(create, TestCloud.layer))))
  }))

it.effect("asks for the account of a device behind a cloud gateway", () =>
  Effect.gen(function*() {
    const product = yield* (yield* Products).create(defaultProjectId, validDraft)
    const productKey = ProductKey.make("gateway")
    yield* (yield* ProductStore).insert({ ...product, productKey, dataSource: 3 })
    const devices = yield* Devices
    const error = yield* Effect.flip(devices.create(defaultProjectId, productKey, { username: "u" }))
    assert.deepInclude(error, { _tag: "InvalidInput" })
    if (error._tag === "InvalidInput") assert.deepStrictEqual(error.issues.map(({ path }) => path), [["clientid"]])
    const { cloudGateway } = yield* devices.create(defaultProjectId, productKey, { clientid: "c", username: "u" })
    assert.deepStrictEqual(cloudGateway, { clientId: "c", username: "u", password: "", deviceUuid: "" })
  }).pipe(
    Effect.provide(DeviceCloud.layer.pipe(Layer.provideMerge(StorageMemory.layer), Layer.provide(PlatformNode.layer)))
  ))

it.effect("what is stored succeeds while a bus of an application throws, is interrupted or returns no Effect", () =>
  Effect.gen(function*() {
    const wrongs: ReadonlyArray<() => ReturnType<NodeBus["Service"]["publish"]>> = [
      () => {
        throw new Error("it throws")
      },
      () => Effect.interrupt,
      // oxlint-disable-next-line no-explicit-any -- a program without types may give anything
      () => Promise.resolve() as any
    ]
    for (const publish of wrongs) {
      const Bus = Layer.effect(NodeBus, Effect.map(NodeBus, (bus) => NodeBus.of({ ...bus, publish })))
      yield* Effect.gen(function*() {
        const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct())
        const devices = yield* Devices
        yield* devices.disable(defaultProjectId, device.deviceId)
        yield* devices.enable(defaultProjectId, device.deviceId)
        const keys = yield* AccessKeys
        const { accessKey: { id } } = yield* keys.create(defaultProjectId, { name: "Back end", role: "admin" })
        yield* keys.remove(defaultProjectId, id)
      }).pipe(
        Effect.provide(
          DeviceCloud.layer.pipe(
            Layer.provideMerge(Layer.provideMerge(Bus, StorageMemory.layer)),
            Layer.provideMerge(PlatformNode.layer)
          ),
          { local: true }
        )
      )
    }
  }))
