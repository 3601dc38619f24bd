import {
  Commands,
  defaultProjectId,
  type Device,
  Devices,
  DeviceSessions,
  Firmwares,
  Mac,
  type Product,
  type ProductDraft,
  Provisioning,
  Shadows,
  type SignMethod,
  Topologies,
  UpgradeTasks
} from "@device-cloud/core"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Queue, Stream } from "effect"
import { storages } from "../../../vitest.storages.ts"

const createProduct = (nodeType: Product["nodeType"], fields: Partial<ProductDraft> = {}) =>
  Fixtures.createProduct({ nodeType, validateType: "none", ...fields })

const nameOf = ({ deviceName, productKey }: Device) => ({ productKey, deviceName })

/** What a sub-device signs, as device SDKs send it. */
const proof = (
  { deviceName, deviceSecret, productKey }: Device,
  { method = "hmacsha1", ...more }: { readonly method?: SignMethod; readonly [field: string]: unknown } = {}
) =>
  Effect.gen(function*() {
    const mac = yield* Mac
    const { time = yield* Clock.currentTimeMillis, ...rest } = more
    const fields = { productKey, deviceName, clientId: `${productKey}&${deviceName}`, timestamp: time as number }
    const text = `clientId${fields.clientId}deviceName${deviceName}productKey${productKey}timestamp${fields.timestamp}`
    return { ...fields, signMethod: method, sign: mac.sign(method, deviceSecret, text), ...rest }
  })

const session = ({ deviceName, productKey }: Device, what: string) =>
  `/ext/session/${productKey}/${deviceName}/combine/${what}`

/** A gateway, as a real MQTT client. */
const gatewayOf = Effect.fnUntraced(function*(device: Device, options?: MqttDevice.TestConnectOptions) {
  const connected = yield* MqttDevice.connect(device, options)
  return {
    ...connected,
    error: connected.takeFrom(`/ext/error/${device.productKey}/${device.deviceName}`),
    add: (...proofs: ReadonlyArray<unknown>) => connected.request(connected.topic("thing/topo/add"), proofs),
    combine: (what: string, params: unknown) => connected.request(session(device, what), params)
  }
})

const { topicOf } = MqttDevice

const statusOf = (device: Device) => Effect.map(CloudState.device(device), ({ status }) => status)

/** A connected gateway with sub-devices that belong to it and have logged in. */
const household = Effect.fnUntraced(function*(count: number, options?: MqttDevice.TestConnectOptions) {
  const gateway = yield* gatewayOf(yield* Fixtures.createDevice(yield* createProduct("gateway")), options)
  const product = yield* createProduct("gateway-sub")
  const subDevices = yield* Effect.forEach(Array.from({ length: count }), () => Fixtures.createDevice(product))
  assert.strictEqual((yield* gateway.add(...yield* Effect.forEach(subDevices, (each) => proof(each)))).code, 200)
  for (const each of subDevices) {
    assert.strictEqual((yield* gateway.combine("login", yield* proof(each))).code, 200)
  }
  return { gateway, product, subDevices: subDevices as [Device, ...Array<Device>] }
})

/** What a device has reported of its property `power`, in the order of its times. */
const reported = (device: Device) => CloudState.samples(device, "power")

const changes = (
  gateway: { readonly takeFrom: (topic: string) => Effect.Effect<MqttDevice.Message>; readonly device: Device }
) => Effect.map(gateway.takeFrom(topicOf(gateway.device, "thing/topo/change")), ({ params }) => params)

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`gateways over MQTT on ${name}`, (it) => {
    it.effect("a gateway adds sub-devices with signatures of each form, lists and deletes them", () =>
      Effect.gen(function*() {
        const gateway = yield* gatewayOf(yield* Fixtures.createDevice(yield* createProduct("gateway")), { over: "tls" })
        const product = yield* createProduct("gateway-sub")
        const [js, c, plain] = [
          yield* Fixtures.createDevice(product),
          yield* Fixtures.createDevice(product),
          yield* Fixtures.createDevice(product)
        ]
        const ofC = yield* proof(c, { method: "hmacsha256" })
        const { sign, signMethod: _, timestamp, ...rest } = ofC
        const plainSign = yield* Effect.map(
          Mac,
          (mac) => mac.sign("hmacmd5", plain.deviceSecret, `deviceName${plain.deviceName}productKey${plain.productKey}`)
        )
        const added = yield* gateway.add(
          yield* proof(js),
          {
            ...rest,
            timestamp: String(timestamp),
            signmethod: "hmacSha256",
            sign: sign.toUpperCase(),
            cleanSession: "true"
          },
          { ...nameOf(plain), signMethod: "hmacMd5", sign: plainSign }
        )
        assert.deepInclude(added, { code: 200, data: [js, c, plain].map(nameOf), method: "thing.topo.add" })
        const listed = yield* gateway.request(gateway.topic("thing/topo/get"), "{}")
        assert.deepStrictEqual(listed.data, [js, c, plain].map(nameOf))
        const removed = yield* gateway.request(gateway.topic("thing/topo/delete"), [nameOf(c)])
        assert.deepInclude(removed, { code: 200, data: [nameOf(c)] })
        const topologies = yield* Topologies
        const left = yield* topologies.subDevices(defaultProjectId, gateway.device.deviceId)
        assert.deepStrictEqual(left.map(({ deviceId }) => deviceId), [js.deviceId, plain.deviceId])
      }))

    it.effect("a sub-device speaks and is spoken to over the connection of its gateway", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [sub] } = yield* household(1)
        assert.strictEqual(yield* statusOf(sub), "online")
        const subscribed = yield* gateway.subscribe([topicOf(sub, "thing/service/#"), "/sys/other/device/#"])
        assert.deepStrictEqual(subscribed, [1, 128])
        const posted = yield* gateway.request(topicOf(sub, "thing/event/property/post"), { power: 1 })
        assert.deepInclude(posted, { code: 200, method: "thing.event.property.post" })
        const commands = yield* Commands
        const command = yield* commands.setProperties(defaultProjectId, sub.deviceId, { power: 0 }, {})
        const set = yield* gateway.takeFrom(topicOf(sub, "thing/service/property/set"))
        assert.deepInclude(set, { id: String(command.messageId), params: { power: 0 } })
        yield* gateway.publish(
          topicOf(sub, "thing/service/property/set_reply"),
          JSON.stringify({ id: set.id, code: 200, data: {} }),
          1
        )
        yield* CloudState.untilState(command, "succeeded")
        const shadow = `/shadow/update/${sub.productKey}/${sub.deviceName}`
        yield* gateway.publish(shadow, JSON.stringify({ method: "get" }), 1)
        const document = yield* gateway.takeFrom(`/shadow/get/${sub.productKey}/${sub.deviceName}`)
        assert.deepStrictEqual(document.payload.state.reported, { power: 1 })
        assert.deepInclude(yield* gateway.combine("logout", nameOf(sub)), { code: 200, data: nameOf(sub) })
        assert.strictEqual(yield* statusOf(sub), "offline")
        const waiting = yield* commands.setProperties(defaultProjectId, sub.deviceId, { power: 1 }, {})
        assert.strictEqual((yield* gateway.combine("login", yield* proof(sub))).code, 200)
        const later = yield* gateway.takeFrom(topicOf(sub, "thing/service/property/set"))
        assert.strictEqual(later.id, String(waiting.messageId))
      }))

    it.effect("a sub-device hears what is desired once its gateway has used its shadow topic", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [subDevice] } = yield* household(1)
        const { deviceName, productKey } = subDevice
        const shadows = yield* Shadows
        yield* shadows.desire(defaultProjectId, subDevice.deviceId, { power: 1 })
        yield* gateway.request(topicOf(subDevice, "thing/event/property/post"), { level: 0 })
        assert.strictEqual(yield* Queue.size(gateway.received), 0)
        yield* gateway.publish(`/shadow/update/${productKey}/${deviceName}`, JSON.stringify({ method: "get" }), 1)
        const topic = `/shadow/get/${productKey}/${deviceName}`
        assert.deepInclude(yield* gateway.takeFrom(topic), { method: "reply" })
        assert.deepInclude((yield* gateway.takeFrom(topic)).payload.state, { desired: { power: 1 } })
      }))

    it.effect("what follows a ? in the topic of a sub-device is ignored", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [sub] } = yield* household(1)
        const names = `${sub.productKey}/${sub.deviceName}`
        yield* gateway.publish(`/shadow/update/${names}?_rid=1`, JSON.stringify({ method: "get" }), 1)
        assert.deepInclude(yield* gateway.takeFrom(`/shadow/get/${names}`), { method: "reply" })
        yield* gateway.publish(
          `/ota/device/inform/${names}?_rid=2`,
          JSON.stringify({ params: { version: "1.2.0" } }),
          1
        )
        assert.strictEqual((yield* CloudState.device(sub)).firmwareVersion, "1.2.0")
      }))

    it.effect("sub-devices log in together or not at all, and go offline with their gateway", () =>
      Effect.gen(function*() {
        const { gateway, product, subDevices } = yield* household(3)
        const events = yield* CloudState.follow(defaultProjectId)
        assert.strictEqual((yield* gateway.combine("batch_logout", subDevices.map(nameOf))).code, 200)
        assert.deepStrictEqual(yield* Effect.forEach(subDevices, statusOf), ["offline", "offline", "offline"])
        const stranger = yield* Fixtures.createDevice(product)
        const proofs = yield* Effect.forEach(subDevices, (each) => proof(each))
        const batch = (all: ReadonlyArray<unknown>) =>
          gateway.combine("batch_login", { signMethod: "hmacSha1", deviceList: all })
        assert.strictEqual((yield* batch([...proofs, yield* proof(stranger)])).code, 6401)
        assert.deepStrictEqual(yield* Effect.forEach(subDevices, statusOf), ["offline", "offline", "offline"])
        const loggedIn = yield* batch(proofs.map((each) => ({ ...each, signMethod: undefined })))
        assert.deepInclude(loggedIn, { code: 200, data: subDevices.map(nameOf) })
        // An item's own algorithm counts, by either name.
        const { signMethod, ...other } = yield* proof(subDevices[0], { method: "hmacsha256" })
        assert.strictEqual((yield* batch([{ ...other, signmethod: signMethod }])).code, 200)
        gateway.client.stream.destroy()
        yield* Effect.forEach(subDevices, (each) => CloudState.untilStatus(each, "offline"))
        const versions = yield* events.pipe(
          Stream.filter((published) =>
            published._tag === "DeviceStatusChanged" &&
            published.device.deviceId === subDevices[0].deviceId
          ),
          Stream.take(3),
          Stream.runCollect
        )
        assert.deepStrictEqual(
          versions.map((published) =>
            published._tag === "DeviceStatusChanged"
              ? [published.status, published.version]
              : []
          ),
          [["offline", 2], ["online", 3], ["offline", 4]]
        )
      }))

    it.effect("a sub-device that a gateway names more than once is logged in once", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [sub] } = yield* household(1)
        yield* gateway.combine("logout", nameOf(sub))
        const right = yield* proof(sub)
        const reply = yield* gateway.combine("batch_login", { deviceList: [right, right, right] })
        assert.strictEqual(reply.code, 200)
        assert.strictEqual((yield* gateway.request(topicOf(sub, "thing/event/property/post"), { power: 1 })).code, 200)
        // No session of it was replaced by another.
        assert.deepStrictEqual(yield* Queue.clear(gateway.received), [])
        gateway.client.stream.destroy()
        yield* CloudState.untilStatus(sub, "offline")
      }))

    it.effect("a gateway that waits for no reply has its session requests carried out in their order", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [sub] } = yield* household(1)
        const replies = []
        for (let i = 0; i < 10; i++) {
          for (const [what, params] of [["logout", nameOf(sub)], ["login", yield* proof(sub)]] as const) {
            replies.push(yield* Effect.forkChild(gateway.combine(what, params)))
            yield* Effect.promise(() => new Promise((sent) => setImmediate(sent)))
          }
        }
        const codes = (yield* Fiber.joinAll(replies)).map(({ code }) => code)
        assert.deepStrictEqual(new Set(codes), new Set([200]))
        assert.strictEqual(yield* statusOf(sub), "online")
      }))

    it.effect("a gateway is told why it cannot speak for a sub-device", () =>
      Effect.gen(function*() {
        const { gateway, product, subDevices: [sub] } = yield* household(1)
        yield* gateway.combine("logout", nameOf(sub))
        assert.strictEqual((yield* gateway.combine("logout", nameOf(sub))).code, 520)
        yield* gateway.publish(topicOf(sub, "thing/event/property/post"), JSON.stringify({ params: { power: 5 } }), 1)
        assert.deepInclude(yield* gateway.error, { code: 520, message: "device no session", data: nameOf(sub) })
        const login = (fields: unknown) => Effect.map(gateway.combine("login", fields), ({ code }) => code)
        const right = yield* proof(sub)
        const unattached = yield* Fixtures.createDevice(product)
        const disabled = yield* Fixtures.createDevice(product)
        yield* gateway.add(yield* proof(disabled))
        yield* (yield* Devices).disable(defaultProjectId, disabled.deviceId)
        assert.deepStrictEqual(yield* changes(gateway), { status: 8, subList: [nameOf(disabled)] })
        assert.deepStrictEqual(
          yield* Effect.forEach([
            { ...right, sign: "0".repeat(40) },
            { ...right, deviceName: "unknown" },
            { ...right, signMethod: "md5" },
            { ...right, timestamp: 1 },
            { ...right, sign: undefined },
            { ...right, clientId: {} },
            yield* proof(unattached),
            yield* proof(disabled),
            []
          ], login),
          [6287, 6100, 460, 6287, 460, 460, 6401, 6204, 460]
        )
        const { data } = yield* gateway.request(gateway.topic("thing/topo/get"), {})
        assert.deepStrictEqual(data, [sub, disabled].map(nameOf))
        assert.strictEqual((yield* gateway.combine("nonsense", {})).code, 6203)
        // None of all that has changed anything, and the gateway is still connected.
        assert.deepStrictEqual([yield* statusOf(sub), yield* login(right)], ["offline", 200])
      }))

    it.effect("refuses topologies that cannot be", () =>
      Effect.gen(function*() {
        const { gateway, product, subDevices: [sub] } = yield* household(1)
        const direct = yield* Fixtures.createDevice(yield* createProduct("direct"))
        const other = yield* Fixtures.createDevice(yield* createProduct("gateway"))
        const free = yield* Fixtures.createDevice(product)
        const add = (...proofs: ReadonlyArray<unknown>) => Effect.map(gateway.add(...proofs), ({ code }) => code)
        assert.deepStrictEqual(
          [
            yield* add(yield* proof(gateway.device)),
            yield* add(yield* proof(direct)),
            yield* add(yield* proof(other)),
            yield* add(yield* proof(free), { ...yield* proof(sub), sign: "00" }),
            yield* add(),
            yield* add(...Array.from({ length: 31 }, () => ({}))),
            (yield* gateway.request(gateway.topic("thing/topo/delete"), [nameOf(free)])).code,
            (yield* gateway.request(gateway.topic("thing/list/found"), [{ ...nameOf(free), deviceName: "abc" }])).code,
            (yield* gateway.request(gateway.topic("thing/list/found"), [nameOf(direct)])).code
          ],
          [6402, 460, 460, 401, 460, 460, 6401, 6280, 6250]
        )
        const left = yield* gateway.request(gateway.topic("thing/topo/get"), {})
        assert.deepStrictEqual(left.data, [nameOf(sub)])
        const ofDirect = yield* gatewayOf(direct)
        assert.strictEqual((yield* ofDirect.add(yield* proof(free))).code, 403)
        assert.strictEqual((yield* ofDirect.combine("login", yield* proof(free))).code, 6401)
        // Someone else's sub-device is not spoken for; its gateway hears nothing of it.
        yield* ofDirect.publish(topicOf(sub, "thing/event/property/post"), JSON.stringify({ params: { power: 9 } }), 1)
        assert.strictEqual(
          (yield* ofDirect.request(ofDirect.topic("thing/event/property/post"), { power: 1 })).code,
          200
        )
        assert.deepStrictEqual(yield* reported(sub), [])
      }))

    it.effect("a sub-device moves to the gateway to which it signs, and its old one learns so", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [sub] } = yield* household(1)
        const next = yield* gatewayOf(yield* Fixtures.createDevice(yield* createProduct("gateway")))
        assert.strictEqual((yield* next.add(yield* proof(sub))).code, 200)
        assert.deepInclude(yield* gateway.error, { code: 6401, data: nameOf(sub) })
        assert.deepStrictEqual(yield* changes(gateway), { status: 1, subList: [nameOf(sub)] })
        assert.strictEqual(yield* statusOf(sub), "offline")
        assert.strictEqual((yield* gateway.combine("login", yield* proof(sub))).code, 6401)
        assert.strictEqual((yield* next.combine("login", yield* proof(sub))).code, 200)
        gateway.client.stream.destroy()
        yield* CloudState.untilStatus(gateway.device, "offline")
        assert.strictEqual(yield* statusOf(sub), "online")
      }))

    it.effect("a proof that was used, is old or is for another gateway moves no sub-device", () =>
      Effect.gen(function*() {
        const { gateway, product, subDevices: [sub] } = yield* household(1)
        const other = yield* gatewayOf(yield* Fixtures.createDevice(yield* createProduct("gateway")))
        const now = yield* Clock.currentTimeMillis
        const mac = yield* Mac
        const { deviceName, deviceSecret, productKey } = sub
        const signed = (fields: Readonly<Record<string, string>>) => {
          const text = Object.keys(fields).sort().map((name) => name + fields[name]).join("")
          return { ...fields, sign: mac.sign("hmacsha1", deviceSecret, text) }
        }
        const add = (to: typeof gateway, fields: unknown) => Effect.map(to.add(fields), ({ code }) => code)
        const own = yield* proof(sub)
        const plain = signed({ productKey, deviceName })
        // Proofs that the other gateway has recorded: from 2020, from before the attachment, used, without a time.
        for (const time of [Date.UTC(2020, 0, 1), now - 60_000]) {
          assert.strictEqual(yield* add(other, yield* proof(sub, { time })), 401)
        }
        assert.strictEqual(yield* add(other, yield* proof(sub, { time: now + 90_000_000 })), 6619)
        assert.strictEqual(yield* add(other, plain), 6619)
        // The time of an old proof hides in a member of another name, or in a value.
        const { sign } = yield* proof(sub, { time: now - 90_000_000 })
        const clientId = `${productKey}&${deviceName}`
        const digits = String(now - 90_000_000)
        for (
          const hidden of [{ timestamp1: digits.slice(1) }, { timestam: `p${digits}` }, { t: `imestamp${digits}` }]
        ) {
          const outcome = yield* add(other, { productKey, deviceName, clientId, ...hidden, sign })
          assert.include([401, 460], outcome)
        }
        // A proof with the names of a gateway is for that one alone.
        const forGateway = signed({
          productKey,
          deviceName,
          timestamp: String(yield* Clock.currentTimeMillis),
          gatewayProductKey: gateway.device.productKey,
          gatewayDeviceName: gateway.device.deviceName
        })
        assert.strictEqual(yield* add(other, forGateway), 401)
        assert.strictEqual((yield* other.combine("login", forGateway)).code, 6287)
        assert.strictEqual((yield* gateway.combine("login", forGateway)).code, 200)
        // A device without a clock says how long it has run, or nothing like a time.
        for (const time of [53_211, now - 90_000_000, now + 90_000_000]) {
          assert.strictEqual((yield* gateway.combine("login", yield* proof(sub, { time }))).code, 200)
        }
        assert.strictEqual(yield* statusOf(sub), "online")

        // What the application takes away, its former gateway does not take back.
        yield* (yield* Topologies).remove(defaultProjectId, gateway.device.deviceId, [sub])
        for (const old of [own, forGateway, plain]) assert.strictEqual(yield* add(gateway, old), 401)
        const moved = yield* proof(sub)
        assert.strictEqual(yield* add(other, moved), 200)
        assert.strictEqual(yield* add(gateway, moved), 401)
        // A constant time is no time: real SDKs send it without a clock.
        const free = yield* Fixtures.createDevice(product)
        const constant = yield* proof(free, { time: 2_524_608_000_000 })
        assert.strictEqual(yield* add(gateway, constant), 200)
        assert.strictEqual(yield* add(other, constant), 6619)
        assert.strictEqual((yield* gateway.request(gateway.topic("thing/topo/delete"), [nameOf(free)])).code, 200)
        assert.strictEqual(yield* add(gateway, constant), 200)
        for (const time of [53_211, Date.UTC(2020, 0, 1)]) {
          const recorded = yield* proof(yield* Fixtures.createDevice(product), { time })
          assert.strictEqual(yield* add(gateway, recorded), 200)
          assert.strictEqual(yield* add(other, recorded), 401)
        }
      }))

    it.effect("what the application does to a sub-device reaches its gateway", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [removed, disabled, deleted, unbound] } = yield* household(4)
        const devices = yield* Devices
        const expectEnd = Effect.fnUntraced(function*(device: Device, code: number, status: number) {
          assert.deepInclude(yield* gateway.error, { code, data: nameOf(device) })
          assert.deepStrictEqual(yield* changes(gateway), { status, subList: [nameOf(device)] })
        })
        yield* (yield* Topologies).remove(defaultProjectId, gateway.device.deviceId, [removed!])
        yield* expectEnd(removed!, 6401, 1)
        assert.strictEqual(yield* statusOf(removed!), "offline")
        yield* devices.disable(defaultProjectId, disabled!.deviceId)
        assert.deepInclude(yield* gateway.takeFrom(topicOf(disabled!, "thing/disable")), { method: "thing.disable" })
        yield* expectEnd(disabled!, 522, 8)
        yield* devices.enable(defaultProjectId, disabled!.deviceId)
        assert.deepStrictEqual(yield* changes(gateway), { status: 2, subList: [nameOf(disabled!)] })
        yield* devices.remove(defaultProjectId, deleted!.deviceId)
        assert.deepInclude(yield* gateway.takeFrom(topicOf(deleted!, "thing/delete")), { method: "thing.delete" })
        yield* expectEnd(deleted!, 521, 1)
        yield* devices.unbind(defaultProjectId, unbound!.deviceId)
        yield* expectEnd(unbound!, 6401, 1)
        const { data } = yield* gateway.request(gateway.topic("thing/topo/get"), {})
        assert.deepStrictEqual(data, [nameOf(disabled!)])
      }))

    it.effect("in an add-session a gateway is told to add what it finds", () =>
      Effect.gen(function*() {
        const topologies = yield* Topologies
        const gateway = yield* gatewayOf(yield* Fixtures.createDevice(yield* createProduct("gateway")))
        const product = yield* createProduct("gateway-sub", { dynamicRegister: true })
        const sub = yield* Fixtures.createDevice(product)
        const { productKey } = product
        const permits = Effect.map(gateway.takeFrom(gateway.topic("thing/gateway/permit")), ({ params }) => params)
        const sessionId = yield* topologies.startAdding(defaultProjectId, gateway.device.deviceId, {
          timeout: 30,
          productKeys: [productKey]
        })
        assert.deepStrictEqual(yield* permits, { time: 30, productKey })
        assert.strictEqual((yield* gateway.request(gateway.topic("thing/list/found"), [nameOf(sub)])).code, 200)
        const notify = yield* gateway.takeFrom(gateway.topic("thing/topo/add/notify"))
        assert.deepStrictEqual(notify.params, [nameOf(sub)])
        const registered = yield* gateway.request(gateway.topic("thing/sub/register"), [nameOf(sub)])
        assert.deepStrictEqual(registered.data, [{
          iotId: sub.deviceId,
          ...nameOf(sub),
          deviceSecret: sub.deviceSecret
        }])
        yield* gateway.add(yield* proof(sub))
        const added = yield* topologies.added(defaultProjectId, gateway.device.deviceId, sessionId)
        assert.deepStrictEqual(added.map(({ deviceId }) => deviceId), [sub.deviceId])
        yield* topologies.stopAdding(defaultProjectId, gateway.device.deviceId, sessionId)
        assert.deepStrictEqual(yield* permits, { time: 0, productKey })
      }))

    it.effect("sub-devices register through their gateway, by its word or with the secret of their product", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [own], product: closed } = yield* household(1)
        const product = yield* createProduct("gateway-sub", { dynamicRegister: true })
        const [a, b] = [yield* Fixtures.createDevice(product), yield* Fixtures.createDevice(product)]
        const register = (...names: ReadonlyArray<unknown>) =>
          Effect.map(gateway.request(gateway.topic("thing/sub/register"), names), ({ code }) => code)
        assert.deepStrictEqual(
          [
            yield* register(nameOf(a)),
            yield* register({ ...nameOf(a), deviceName: "unknown" }),
            yield* register(nameOf(yield* Fixtures.createDevice(closed))),
            yield* register(nameOf(gateway.device)),
            yield* register({ productKey: 5 })
          ],
          [200, 6100, 6288, 6250, 460]
        )
        const registration = (device: Device, secret: string) =>
          Effect.map(Mac, (mac) => {
            const { deviceName, productKey } = device
            const random = "551556073FC5B34AAF68"
            const text = `deviceName${deviceName}productKey${productKey}random${random}`
            return {
              productKey,
              deviceName,
              random,
              signMethod: "hmacSha256",
              sign: mac.sign("hmacsha256", secret, text).toUpperCase()
            }
          })
        const { data } = yield* gateway.request(gateway.topic("thing/proxy/provisioning/product_register"), {
          proxieds: [yield* registration(b, product.productSecret), yield* registration(a, "wrong")]
        })
        assert.deepStrictEqual(data.successes, [{ iotId: b.deviceId, ...nameOf(b), deviceSecret: b.deviceSecret }])
        assert.deepStrictEqual(data.failures.map(({ code }: { readonly code: number }) => code), [6600])
        assert.strictEqual((yield* gateway.request(gateway.topic("thing/sub/unregister"), [nameOf(own)])).code, 200)
        assert.strictEqual(yield* statusOf(own), "offline")
      }))

    it.effect("a refused registration of several sub-devices registers none of them", () =>
      Effect.gen(function*() {
        const gateway = yield* gatewayOf(yield* Fixtures.createDevice(yield* createProduct("gateway")))
        const { productKey, productSecret } = yield* createProduct("gateway-sub", { dynamicRegister: true })
        const { deviceName } = yield* Effect.flatMap(Devices, (devices) =>
          devices.create(defaultProjectId, productKey, {}))
        const { code } = yield* gateway.request(gateway.topic("thing/sub/register"), [
          { productKey, deviceName },
          { productKey, deviceName: "unknown" }
        ])
        assert.strictEqual(code, 6100)
        // So the device is still there for whoever registers next.
        const mac = "AA:BB:CC:DD:EE:FF"
        const random = "123456"
        const sign = (yield* Mac).sign("hmacsha1", productSecret, `mac${mac}productKey${productKey}random${random}`)
        const request = { productKey, mac, random, signMethod: "hmacsha1", sign } as const
        const triple = yield* Effect.flatMap(Provisioning, (provisioning) =>
          provisioning.register(request, "::1"))
        assert.strictEqual(triple.deviceName, deviceName)
      }))

    it.effect("one message carries what a gateway and its sub-devices report, wholly or not at all", () =>
      Effect.gen(function*() {
        const { gateway, product, subDevices: [a, b] } = yield* household(2)
        const packed = (device: Device, power: number) => ({
          identity: nameOf(device),
          properties: { power: { value: power, time: 1_700_000_000_000 + power } },
          events: { alarm: { value: { code: power }, time: 1_700_000_000_000 } }
        })
        const pack = (...subDevices: ReadonlyArray<unknown>) =>
          gateway.request(gateway.topic("thing/event/property/pack/post"), {
            properties: { power: { value: 7, time: 1_700_000_000_007 } },
            subDevices
          })
        assert.strictEqual((yield* pack(packed(a, 1), packed(b!, 2))).code, 200)
        const foreign = yield* Fixtures.createDevice(product)
        assert.strictEqual((yield* pack(packed(a, 3), packed(foreign, 4))).code, 6401)
        assert.strictEqual((yield* pack(...Array.from({ length: 21 }, () => packed(a, 5)))).code, 6357)
        assert.strictEqual((yield* pack({ identity: {}, properties: {} })).code, 460)
        const late = yield* gateway.request(gateway.topic("thing/event/property/history/post"), [
          { identity: nameOf(a), properties: [{ power: { value: 6, time: 1_700_000_000_000 } }] },
          { properties: [{ power: { value: 8, time: 1_700_000_000_000 } }] }
        ])
        assert.strictEqual(late.code, 200)
        assert.deepStrictEqual(
          [yield* reported(gateway.device), yield* reported(a), yield* reported(b!), yield* reported(foreign)],
          [[8, 7], [6, 1], [2], []]
        )
      }))

    it.effect("a sub-device is upgraded through its gateway", () =>
      Effect.gen(function*() {
        const { gateway, product, subDevices: [sub] } = yield* household(1)
        const tasks = yield* UpgradeTasks
        const topic = (what: string) => `/ota/device/${what}/${sub.productKey}/${sub.deviceName}`
        const say = (what: string, params: unknown) =>
          gateway.publish(topic(what), JSON.stringify({ id: 1, params }), 1)
        yield* say("inform", { version: "1.0.0" })
        const { firmware } = yield* (yield* Firmwares).create(defaultProjectId, product.productKey, {
          name: "Bulb",
          version: "2.0.0",
          ossPath: "https://cloud.example.com/bulb.bin",
          algorithms: "md5",
          hash: "93230c3bde425a9d7984a594ac55ea1e"
        })
        const { taskId } = yield* tasks.createUpgradeTask(defaultProjectId, firmware.firmwareId, {
          scopeMode: "all",
          cloudPush: true
        })
        assert.strictEqual((yield* gateway.takeFrom(topic("upgrade"))).data.version, "2.0.0")
        yield* say("progress", { step: "50", desc: "" })
        yield* say("inform", { version: "2.0.0" })
        yield* eventually(
          tasks.records(defaultProjectId, taskId, {}, { page: 1, pageSize: 10 }),
          { until: ({ items }) => items[0]?.record.status === "succeeded" }
        )
      }))

    it.effect("a gateway that comes back to its session has its subscriptions to topics of its sub-devices", () =>
      Effect.gen(function*() {
        const kept = { options: { clean: false, resubscribe: false } }
        const { gateway, subDevices: [sub] } = yield* household(1, kept)
        // A subscription of QoS 0 shows in what is delivered.
        assert.deepStrictEqual(yield* gateway.subscribe([topicOf(sub, "thing/service/#")], 0), [0])
        yield* gateway.end
        const again = yield* gatewayOf(gateway.device, kept)
        assert.strictEqual((yield* again.combine("login", yield* proof(sub))).code, 200)
        yield* (yield* Commands).setProperties(defaultProjectId, sub.deviceId, { power: 0 }, {})
        assert.deepInclude(yield* again.take, { topic: topicOf(sub, "thing/service/property/set"), qos: 0 })
      }))

    it.effect("a gateway that connects again leaves no session of its sub-devices behind", () =>
      Effect.gen(function*() {
        const { gateway, subDevices: [sub] } = yield* household(1)
        const again = yield* gatewayOf(gateway.device)
        yield* gateway.closed
        yield* CloudState.untilStatus(sub, "offline")
        assert.strictEqual((yield* again.combine("login", yield* proof(sub))).code, 200)
        assert.strictEqual(yield* statusOf(sub), "online")
        assert.isDefined((yield* DeviceSessions).session(sub.deviceId))
        yield* again.end
        yield* CloudState.untilStatus(sub, "offline")
      }))
  })
}
