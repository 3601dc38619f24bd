import {
  defaultProjectId,
  type Device,
  Devices,
  EventBus,
  Firmwares,
  type Product,
  Products,
  Upgrades
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue, Schedule, Stream } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { brokerOn, tcp } from "./TestBroker.ts"
import { connect, type TestDevice } from "./TestDevice.ts"

const createProduct = Effect.flatMap(Products, (products) =>
  products.create(defaultProjectId, {
    name: "Thermostat",
    nodeType: "direct",
    networkType: "wifi",
    validateType: "none",
    dataFormat: "json",
    authType: "secret"
  }))

const createDevices = (product: Product, count: number) =>
  Effect.flatMap(Devices, (devices) =>
    Effect.forEach(
      Array.from({ length: count }),
      () => devices.create(defaultProjectId, product.productKey, {})
    ))

const createFirmware = ({ productKey }: Product) =>
  Effect.flatMap(Firmwares, (firmwares) =>
    firmwares.create(defaultProjectId, productKey, {
      name: "Thermostat",
      version: "2.0.0",
      ossPath: "https://cloud.example.com/firmware.bin",
      algorithms: 1,
      hash: "93230c3bde425a9d7984a594ac55ea1e",
      size: 1000
    }))

const own = ({ deviceName, productKey }: Device) => `${productKey}/${deviceName}`

const inform = (device: Device, connected: TestDevice, version: string) =>
  connected.publish(`/ota/device/inform/${own(device)}`, JSON.stringify({ id: 6, params: { version } }), 1)

const progress = (device: Device, connected: TestDevice, step: string, desc = "") =>
  connected.publish(
    `/ota/device/progress/${own(device)}`,
    JSON.stringify({ id: 1, params: { step, desc, module: "default" } }),
    1
  )

const statuses = (taskId: number) =>
  Effect.flatMap(Upgrades, (upgrades) =>
    Effect.map(
      upgrades.records(defaultProjectId, taskId, undefined, { page: 1, pageSize: 100 }),
      ({ items }) => new Map(items.map(({ record }) => [record.deviceId, record.status]))
    ))

/** Until the status of a device in a task is this one. */
const untilStatus = (taskId: number, { deviceId }: Device, status: number) =>
  Effect.repeat(statuses(taskId), {
    until: (all) => all.get(deviceId) === status,
    schedule: Schedule.spaced("20 millis")
  })

const pushed = ({ received }: TestDevice) => Queue.take(received)

for (const [name, storage] of storages) {
  layer(brokerOn(storage), { excludeTestServices: true })(`upgrades of MQTT devices on ${name}`, (it) => {
    it.effect("a campaign ends with the right states, whatever its devices do", () =>
      Effect.gen(function*() {
        const upgrades = yield* Upgrades
        const product = yield* createProduct
        const devices = yield* createDevices(product, 30)
        const { firmware } = yield* createFirmware(product)
        // One goes offline in the middle, one fails, one never answers, one reports the version without progress.
        const [leaves, fails, silent, quiet, late, ...others] = devices as [
          Device,
          Device,
          Device,
          Device,
          Device,
          ...Array<Device>
        ]
        const events = yield* (yield* EventBus).since()
        const online = new Map<Device, TestDevice>()
        for (const device of devices) {
          if (device === late) continue
          const connected = yield* connect(device, yield* tcp)
          online.set(device, connected)
          yield* inform(device, connected, "1.0.0")
        }
        const task = yield* upgrades.createUpgradeTask(defaultProjectId, firmware.firmwareId, {
          scopeMode: 0,
          cloudPush: true,
          timeout: 3,
          maximumPerMinute: 60_000
        })
        assert.strictEqual(task.counts.pending, 30)
        const expected = {
          topic: `/ota/device/upgrade/${own(fails)}`,
          qos: 1,
          code: "1000",
          message: "success",
          data: {
            size: 1000,
            version: "2.0.0",
            url: "https://cloud.example.com/firmware.bin",
            md5: "93230c3bde425a9d7984a594ac55ea1e",
            sign: "93230c3bde425a9d7984a594ac55ea1e",
            signMethod: "Md5",
            module: "default",
            isDiff: 0,
            extData: {}
          }
        }
        const told = yield* pushed(online.get(fails)!)
        const { id, ...message } = told.message
        assert.strictEqual(typeof id, "number")
        assert.deepStrictEqual<object>({ topic: told.topic, qos: told.qos, ...message }, expected)
        yield* progress(fails, online.get(fails)!, "-3", "bad checksum")

        yield* pushed(online.get(leaves)!)
        yield* progress(leaves, online.get(leaves)!, "10")
        yield* untilStatus(task.taskId, leaves, 2)
        yield* online.get(leaves)!.end
        const back = yield* connect(leaves, yield* tcp)
        // It is told again when it has come back.
        yield* inform(leaves, back, "1.0.0")
        assert.deepInclude((yield* pushed(back)).message, { data: expected.data })
        yield* inform(leaves, back, "2.0.0")

        yield* pushed(online.get(quiet)!)
        yield* inform(quiet, online.get(quiet)!, "2.0.0")
        yield* pushed(online.get(silent)!)
        yield* Effect.forEach(others, (device) =>
          Effect.gen(function*() {
            const connected = online.get(device)!
            yield* pushed(connected)
            for (const step of ["0", "50", "100"]) yield* progress(device, connected, step)
            yield* inform(device, connected, "2.0.0")
          }), { concurrency: "unbounded" })

        // One that was away is told when it comes.
        const came = yield* connect(late, yield* tcp)
        yield* inform(late, came, "1.0.0")
        assert.deepInclude((yield* pushed(came)).message, { data: expected.data })
        yield* inform(late, came, "2.0.0")

        yield* untilStatus(task.taskId, silent, 4)
        const ended = yield* Effect.repeat(upgrades.task(defaultProjectId, task.taskId), {
          until: ({ status }) => status === 2,
          schedule: Schedule.spaced("20 millis")
        })
        assert.deepStrictEqual(ended.counts, { pending: 0, upgrading: 0, succeeded: 28, failed: 2, cancelled: 0 })
        const all = yield* statuses(task.taskId)
        assert.deepStrictEqual([fails, silent, leaves, quiet, late].map(({ deviceId }) => all.get(deviceId)), [
          4,
          4,
          3,
          3,
          3
        ])
        assert.strictEqual((yield* upgrades.diagnose(defaultProjectId, silent.deviceId)).reason, "timed-out")
        // Each has one end.
        const ends = yield* events.pipe(
          Stream.filter((published) =>
            published !== "gap" && published.event._tag === "UpgradeProgressed" && published.event.status > 2
          ),
          Stream.take(30),
          Stream.runCollect
        )
        assert.strictEqual(new Set([...ends].map((end) => end === "gap" ? "" : end.event.device.deviceId)).size, 30)
      }))

    it.effect("a device that asks is answered, with nothing when there is nothing", () =>
      Effect.gen(function*() {
        const product = yield* createProduct
        const [device] = yield* createDevices(product, 1)
        const connected = yield* connect(device!, yield* tcp)
        const ask = (params: object) =>
          Effect.andThen(
            connected.publish(connected.topic("thing/ota/firmware/get"), JSON.stringify({ id: 7, params }), 1),
            pushed(connected)
          )
        assert.deepStrictEqual(yield* ask({}), {
          topic: connected.topic("thing/ota/firmware/get_reply"),
          qos: 1,
          message: {
            id: 7,
            code: 200,
            message: "success",
            data: {},
            method: "thing.ota.firmware.get",
            version: "1.0"
          }
        })
        const { firmware } = yield* createFirmware(product)
        const upgrades = yield* Upgrades
        const { taskId } = yield* upgrades.createUpgradeTask(defaultProjectId, firmware.firmwareId, { scopeMode: 0 })
        assert.deepInclude((yield* ask({})).message["data"] as object, { version: "2.0.0", signMethod: "Md5" })
        assert.deepStrictEqual((yield* ask({ module: "MCU" })).message["data"], {})
        assert.deepStrictEqual((yield* ask({ module: "a b" })).message["code"], 460)
        assert.strictEqual((yield* statuses(taskId)).get(device!.deviceId), 2)
      }))
  })
}
