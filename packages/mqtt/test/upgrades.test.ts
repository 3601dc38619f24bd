import {
  defaultProjectId,
  type Device,
  type FirmwareDraft,
  Firmwares,
  isUpgradeFinal,
  Objects,
  type Product,
  type RecordStatus,
  Upgrades,
  UpgradeTasks
} from "@device-cloud/core"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Stream } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { storages } from "../../../vitest.storages.ts"

const createProduct = Fixtures.createProduct({ validateType: "none" })

const createFirmware = ({ productKey }: Product, fields: Partial<FirmwareDraft> = { size: 1000 }) =>
  Effect.flatMap(Firmwares, (firmwares) =>
    firmwares.create(defaultProjectId, productKey, {
      name: "Thermostat",
      version: "2.0.0",
      ossPath: "https://cloud.example.com/firmware.bin",
      algorithms: "md5",
      hash: "93230c3bde425a9d7984a594ac55ea1e",
      ...fields
    }))

/** A firmware whose file is an object of the cloud. */
const storeFirmware = Effect.fnUntraced(function*(product: Product, content: Uint8Array, version = "2.0.0") {
  const objects = yield* Objects
  const { fileName, md5, objectId } = yield* objects.upload(defaultProjectId, "fw.bin", Stream.make(content))
  const ossPath = `https://cloud.example.com/objects/${objectId}/${fileName}`
  return (yield* createFirmware(product, { version, ossPath, hash: md5 })).firmware
})

interface Block {
  readonly head: { readonly id: unknown; readonly code: number; readonly message: string; readonly data: object }
  readonly bytes: Buffer
  readonly crc: number
}

/** As the public C SDK reads it. */
const readBlock = (payload: Buffer): Block => {
  const start = 2 + payload.readUInt16BE(0)
  return {
    head: JSON.parse(payload.toString("utf8", 2, start)),
    bytes: payload.subarray(start, -2),
    crc: payload.readUInt16LE(payload.length - 2)
  }
}

/** Bit by bit. */
const crcOf = (bytes: Buffer): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? 0xa001 : 0)
  }
  return crc
}

const askForBlock = Effect.fnUntraced(function*(connected: MqttDevice.MqttDevice, payload: string) {
  yield* connected.publish(connected.topic("thing/file/download"), payload)
  const { message, topic } = yield* connected.take
  assert.strictEqual(topic, connected.topic("thing/file/download_reply"))
  const block = readBlock(message["payload"] as Buffer)
  assert.strictEqual(block.crc, crcOf(block.bytes))
  return block
})

const blockParams = (streamId: unknown, size: unknown, offset: unknown, fileId: unknown = 1) =>
  JSON.stringify({ id: "9", params: { fileInfo: { streamId, fileId }, fileBlock: { size, offset } } })

const own = ({ deviceName, productKey }: Device) => `${productKey}/${deviceName}`

const inform = (device: Device, connected: MqttDevice.MqttDevice, version: string) =>
  connected.publish(`/ota/device/inform/${own(device)}`, JSON.stringify({ id: 6, params: { version } }), 1)

const progress = (device: Device, connected: MqttDevice.MqttDevice, step: string, desc = "") =>
  connected.publish(
    `/ota/device/progress/${own(device)}`,
    JSON.stringify({ id: 1, params: { step, desc, module: "default" } }),
    1
  )

const statuses = (taskId: number) =>
  Effect.flatMap(UpgradeTasks, (tasks) =>
    Effect.map(
      tasks.records(defaultProjectId, taskId, {}, { page: 1, pageSize: 100 }),
      ({ items }) => new Map(items.map(({ record }) => [record.deviceId, record.status]))
    ))

/** Until the status of a device in a task is this one. */
const untilStatus = (taskId: number, { deviceId }: Device, status: RecordStatus) =>
  eventually(statuses(taskId), { until: (all) => all.get(deviceId) === status })

/** A clock that a test puts forward: time flows, and devices that say nothing are late at once. */
const forwardClock = () => {
  let forward = 0
  const real = Clock.Clock.defaultValue()
  const clock: Clock.Clock = Object.assign(Object.create(real) as Clock.Clock, {
    currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() + forward,
    currentTimeMillis: Effect.sync(() => real.currentTimeMillisUnsafe() + forward)
  })
  return { clock, put: (millis: number) => Effect.sync(() => void (forward += millis)) }
}

for (const [name, storage] of storages) {
  const { clock, put } = forwardClock()
  const server = MqttTestServer.layer(storage).pipe(Layer.provideMerge(Layer.succeed(Clock.Clock, clock)))
  layer(server, { excludeTestServices: true })(`a campaign of upgrades on ${name}`, (it) => {
    it.effect("a campaign ends with the right states, whatever its devices do", () =>
      Effect.gen(function*() {
        const tasks = yield* UpgradeTasks
        const product = yield* createProduct
        const devices = yield* Fixtures.createDevices(30, product)
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
        const events = yield* CloudState.follow(defaultProjectId)
        const online = new Map<Device, MqttDevice.MqttDevice>()
        for (const device of devices) {
          if (device === late) continue
          const connected = yield* MqttDevice.connect(device)
          online.set(device, connected)
          yield* inform(device, connected, "1.0.0")
        }
        const task = yield* tasks.createUpgradeTask(defaultProjectId, firmware.firmwareId, {
          scopeMode: "all",
          cloudPush: true,
          timeout: 600,
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
        const told = yield* online.get(fails)!.take
        const { id, ...message } = told.message
        assert.strictEqual(typeof id, "number")
        assert.deepStrictEqual<object>({ topic: told.topic, qos: told.qos, ...message }, expected)
        yield* progress(fails, online.get(fails)!, "-3", "bad checksum")

        yield* online.get(leaves)!.take
        yield* progress(leaves, online.get(leaves)!, "10")
        yield* untilStatus(task.taskId, leaves, "upgrading")
        yield* online.get(leaves)!.end
        const back = yield* MqttDevice.connect(leaves)
        // It is told again when it has come back.
        yield* inform(leaves, back, "1.0.0")
        assert.deepInclude((yield* back.take).message, { data: expected.data })
        yield* inform(leaves, back, "2.0.0")

        yield* online.get(quiet)!.take
        yield* inform(quiet, online.get(quiet)!, "2.0.0")
        yield* online.get(silent)!.take
        yield* Effect.forEach(others, (device) =>
          Effect.gen(function*() {
            const connected = online.get(device)!
            yield* connected.take
            for (const step of ["0", "50", "100"]) yield* progress(device, connected, step)
            yield* inform(device, connected, "2.0.0")
          }), { concurrency: "unbounded" })

        // One that was away is told when it comes.
        const came = yield* MqttDevice.connect(late)
        yield* inform(late, came, "1.0.0")
        assert.deepInclude((yield* came.take).message, { data: expected.data })
        yield* inform(late, came, "2.0.0")

        yield* eventually(tasks.get(defaultProjectId, task.taskId), { until: ({ counts }) => counts.succeeded === 28 })
        assert.notStrictEqual((yield* statuses(task.taskId)).get(silent.deviceId), "failed")
        yield* put(600_000)
        yield* untilStatus(task.taskId, silent, "failed")
        const ended = yield* eventually(tasks.get(defaultProjectId, task.taskId), {
          until: ({ status }) => status === "completed"
        })
        assert.deepStrictEqual(ended.counts, { pending: 0, upgrading: 0, succeeded: 28, failed: 2, cancelled: 0 })
        const all = yield* statuses(task.taskId)
        assert.deepStrictEqual([fails, silent, leaves, quiet, late].map(({ deviceId }) => all.get(deviceId)), [
          "failed",
          "failed",
          "succeeded",
          "succeeded",
          "succeeded"
        ])
        assert.strictEqual((yield* (yield* Upgrades).diagnose(defaultProjectId, silent.deviceId)).reason, "timed-out")
        // Each has one end.
        const ends = yield* events.pipe(
          Stream.filter((published) =>
            published._tag === "UpgradeProgressed" &&
            isUpgradeFinal(published.status)
          ),
          Stream.take(30),
          Stream.runCollect
        )
        assert.strictEqual(new Set([...ends].map((end) => end.device?.deviceId)).size, 30)
      }))
  })

  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`upgrades of MQTT devices on ${name}`, (it) => {
    it.effect("a device that asks is answered, with nothing when there is nothing", () =>
      Effect.gen(function*() {
        const product = yield* createProduct
        const [device] = yield* Fixtures.createDevices(1, product)
        const connected = yield* MqttDevice.connect(device!)
        const ask = (params: object) =>
          Effect.andThen(
            connected.publish(connected.topic("thing/ota/firmware/get"), JSON.stringify({ id: 7, params }), 1),
            connected.take
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
        const tasks = yield* UpgradeTasks
        const { taskId } = yield* tasks.createUpgradeTask(defaultProjectId, firmware.firmwareId, { scopeMode: "all" })
        assert.deepInclude((yield* ask({})).message["data"] as object, { version: "2.0.0", signMethod: "Md5" })
        assert.deepStrictEqual((yield* ask({ module: "MCU" })).message["data"], {})
        assert.deepStrictEqual((yield* ask({ module: "a b" })).message["code"], 460)
        assert.strictEqual((yield* statuses(taskId)).get(device!.deviceId), "upgrading")
      }))

    it.effect("a device without HTTP gets its firmware in blocks over its connection", () =>
      Effect.gen(function*() {
        const tasks = yield* UpgradeTasks
        const product = yield* createProduct
        const [device] = (yield* Fixtures.createDevices(1, product)) as [Device]
        const content = randomBytes(300_001)
        const firmware = yield* storeFirmware(product, content)
        assert.strictEqual(firmware.size, content.length)
        const { taskId } = yield* tasks.createUpgradeTask(defaultProjectId, firmware.firmwareId, {
          scopeMode: "all",
          cloudPush: true,
          downloadProtocol: "mqtt"
        })
        const connected = yield* MqttDevice.connect(device)
        yield* inform(device, connected, "1.0.0")
        const { data } = (yield* connected.take).message as { readonly data: Record<string, unknown> }
        assert.deepInclude(data, { dProtocol: "mqtt", streamFileId: 1, size: content.length, signMethod: "Md5" })
        assert.notProperty(data, "url")
        const parts: Array<Buffer> = []
        for (let offset = 0; offset < content.length; offset += 131_072) {
          // With the comma of the public C SDK.
          const { bytes, head } = yield* askForBlock(
            connected,
            `{"id":"7","version":"1.0","params":{"fileToken":"default","fileInfo":{"streamId":${data["streamId"]},` +
              `"fileId":1,},"fileBlock":{"size":131072,"offset":${offset}}}}`
          )
          assert.deepStrictEqual<object>(head, {
            id: "7",
            code: 200,
            message: "success",
            data: {
              size: bytes.length,
              fileToken: "default",
              fileLength: content.length,
              bOffset: offset,
              bSize: bytes.length
            }
          })
          parts.push(bytes)
        }
        assert.strictEqual(createHash("md5").update(Buffer.concat(parts)).digest("hex"), data["md5"])
        // What looks like that comma within a text stays.
        const [id, fileToken] = ["a,}", "{b, }c"]
        const fileInfo = { streamId: data["streamId"], fileId: 1 }
        const params = { fileToken, fileInfo, fileBlock: { size: 1, offset: 0 } }
        const block = yield* askForBlock(connected, JSON.stringify({ id, params }))
        assert.deepInclude(block.head, { id, code: 200 })
        assert.deepInclude(block.head.data, { fileToken })
        yield* inform(device, connected, "2.0.0")
        yield* untilStatus(taskId, device, "succeeded")
        const { bytes, head } = yield* askForBlock(connected, blockParams(firmware.firmwareId, 256, 0))
        assert.deepStrictEqual([head.code, bytes.length], [404, 0])
      }))

    it.effect("a block is for the device that is to be upgraded with it, within the file", () =>
      Effect.gen(function*() {
        const tasks = yield* UpgradeTasks
        const product = yield* createProduct
        const [device, idle] = (yield* Fixtures.createDevices(2, product)) as [Device, Device]
        const [stranger] = (yield* Fixtures.createDevices(1, yield* createProduct)) as [Device]
        const { firmwareId } = yield* storeFirmware(product, Buffer.alloc(1000, 1))
        const other = yield* storeFirmware(product, Buffer.alloc(10), "3.0.0")
        const { taskId } = yield* tasks.createUpgradeTask(defaultProjectId, firmwareId, {
          scopeMode: "targeted",
          deviceIds: [device.deviceId],
          needAppConfirm: true
        })
        const connected = yield* MqttDevice.connect(device)
        const ask = (...params: Parameters<typeof blockParams>) =>
          Effect.map(askForBlock(connected, blockParams(...params)), ({ bytes, head }) => [head.code, bytes.length])
        assert.deepStrictEqual(yield* ask(firmwareId, 256, 0), [404, 0])
        yield* tasks.confirm(defaultProjectId, taskId)
        assert.deepStrictEqual(yield* ask(firmwareId, 256, 0), [200, 256])
        assert.deepStrictEqual(yield* ask(firmwareId, 1, 999), [200, 1])
        assert.deepStrictEqual(yield* ask(firmwareId, 131_072, 990), [200, 10])
        const refused: ReadonlyArray<Parameters<typeof blockParams>> = [
          [firmwareId, 1, 1000],
          [firmwareId, 1, 2 ** 53],
          [firmwareId, 1, -1],
          [firmwareId, 1, "0"],
          [firmwareId, 0, 0],
          [firmwareId, 131_073, 0],
          [firmwareId, 1.5, 0],
          ["x", 1, 0],
          [firmwareId, 1, 0, null]
        ]
        for (const params of refused) assert.deepStrictEqual(yield* ask(...params), [460, 0], JSON.stringify(params))
        assert.deepStrictEqual(yield* ask(firmwareId, 1, 0, 2), [404, 0])
        assert.deepStrictEqual(yield* ask(other.firmwareId, 1, 0), [404, 0])
        for (const payload of ["{", "[]", "{\"id\":1}", "{\"params\":{\"fileInfo\":[]}}"]) {
          assert.include([460, 6207], (yield* askForBlock(connected, payload)).head.code, payload)
        }
        const longId = yield* askForBlock(connected, JSON.stringify({ id: "x".repeat(70_000), params: {} }))
        assert.deepInclude(longId.head, { id: "0", code: 460 })
        for (const each of [idle, stranger]) {
          const { head } = yield* askForBlock(yield* MqttDevice.connect(each), blockParams(firmwareId, 256, 0))
          assert.strictEqual(head.code, 404)
        }
      }))

    it.effect("a device that knows the file gets no block while its window is closed, unless it has begun", () =>
      Effect.gen(function*() {
        const product = yield* createProduct
        const [device] = (yield* Fixtures.createDevices(1, product)) as [Device]
        const { firmwareId } = yield* storeFirmware(product, Buffer.alloc(1000, 1))
        const now = yield* Clock.currentTimeMillis
        const clockIn = (hours: number) => new Date(now + hours * 3_600_000).toISOString().slice(11, 16)
        const { taskId } = yield* (yield* UpgradeTasks).createUpgradeTask(defaultProjectId, firmwareId, {
          scopeMode: "targeted",
          deviceIds: [device.deviceId],
          startWindow: { start: clockIn(2), end: clockIn(3) }
        })
        const connected = yield* MqttDevice.connect(device)
        const ask = Effect.map(
          askForBlock(connected, blockParams(firmwareId, 256, 0)),
          ({ bytes, head }) => [head.code, bytes.length]
        )
        assert.deepStrictEqual(yield* ask, [404, 0])
        yield* progress(device, connected, "10")
        yield* untilStatus(taskId, device, "upgrading")
        assert.deepStrictEqual(yield* ask, [200, 256])
      }))

    it.effect("a device says how it wants to download, and is told when that cannot be", () =>
      Effect.gen(function*() {
        const tasks = yield* UpgradeTasks
        const product = yield* createProduct
        const [device] = (yield* Fixtures.createDevices(1, product)) as [Device]
        const elsewhere = (yield* createFirmware(product)).firmware
        const overMqtt = { scopeMode: "all", downloadProtocol: "mqtt" } as const
        const refusal = yield* Effect.flip(
          tasks.createUpgradeTask(defaultProjectId, elsewhere.firmwareId, overMqtt)
        )
        assert.strictEqual(refusal._tag, "FirmwareState")
        const first = yield* tasks.createUpgradeTask(defaultProjectId, elsewhere.firmwareId, { scopeMode: "all" })
        const connected = yield* MqttDevice.connect(device)
        const topic = connected.topic("thing/ota/firmware/get")
        // The roll-out itself may tell it before it is answered.
        const ask = (params: object) =>
          Effect.andThen(
            connected.publish(topic, JSON.stringify({ id: 7, params })),
            Effect.map(connected.takeFrom(`${topic}_reply`), ({ data }) => data as Record<string, unknown>)
          )
        const url = "https://cloud.example.com/firmware.bin"
        assert.deepInclude(yield* ask({ dProtocol: "mqtt" }), { url, dProtocol: "https" })
        const { head } = yield* askForBlock(connected, blockParams(elsewhere.firmwareId, 256, 0))
        assert.strictEqual(head.code, 404)
        assert.include(head.message, url)
        yield* (yield* Upgrades).cancelDevice(defaultProjectId, first.taskId, device.deviceId)

        const stored = yield* storeFirmware(product, Buffer.alloc(10), "3.0.0")
        yield* tasks.createUpgradeTask(defaultProjectId, stored.firmwareId, { scopeMode: "all", cloudPush: true })
        const { firmwareId: streamId } = stored
        assert.deepInclude(yield* ask({ dProtocol: "mqtt" }), { dProtocol: "mqtt", streamId, streamFileId: 1 })
        assert.deepInclude(yield* ask({}), { url: stored.ossPath })
        // What is told on its inform follows its wish as well.
        yield* connected.publish(
          `/ota/device/inform/${own(device)}`,
          JSON.stringify({ id: 1, params: { version: "1.0.0", dProtocol: "mqtt" } })
        )
        let told = yield* connected.take
        // The roll-out itself may have told it in between.
        if ("url" in (told.message["data"] as object)) told = yield* connected.take
        assert.deepInclude(told.message["data"] as object, { dProtocol: "mqtt", streamId })
      }))

    it.effect("an old device asks on a topic of its own, and is answered there", () =>
      Effect.gen(function*() {
        const tasks = yield* UpgradeTasks
        const product = yield* createProduct
        const [device] = (yield* Fixtures.createDevices(1, product)) as [Device]
        const connected = yield* MqttDevice.connect(device)
        const topic = `/ota/device/request/${own(device)}`
        const ask = (params: object) =>
          Effect.andThen(connected.publish(topic, JSON.stringify({ id: 8, params })), connected.take)
        assert.deepStrictEqual(yield* ask({ version: "1.0.0" }), {
          topic,
          qos: 0,
          message: { code: "1000", id: 8, message: "success", data: {} }
        })
        assert.deepInclude((yield* ask({ module: "a b" })).message, { code: "460", data: {} })
        const { firmware } = yield* createFirmware(product)
        const { taskId } = yield* tasks.createUpgradeTask(defaultProjectId, firmware.firmwareId, { scopeMode: "all" })
        const { data } = (yield* ask({ version: "1.0.0" })).message as { readonly data: object }
        assert.deepInclude(data, { version: "2.0.0", url: firmware.ossPath, md5: firmware.hash, size: 1000 })
        assert.strictEqual((yield* statuses(taskId)).get(device.deviceId), "upgrading")
      }))
  })
}
