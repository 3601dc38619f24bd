import { CloudError } from "@device-cloud/promise"
import { SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { assert, describe, test } from "vitest"

describe("a test cloud with promises", () => {
  test("time passes when the test says so, and scenes fire in it", async () => {
    await using cloud = await TestCloud.start()
    assert.strictEqual(cloud.now().toISOString(), "2026-01-01T00:00:00.000Z")
    const device = await cloud.createDevice()
    const fan = await cloud.createDevice()
    const set: Array<unknown> = []
    await cloud.connect(fan, { on: { set: async (values) => void set.push(values) } })
    await cloud.scenes.create("default", {
      name: "Half past midnight",
      status: "enable",
      triggers: [{ URI: "trigger/cron", params: { cron: "0 30 0 * * *" } }],
      actions: [{
        URI: "action/device/property",
        params: { device_id: fan.deviceId, items: { power: 1 } }
      }]
    })
    const lamp = await cloud.connect(device)
    assert.strictEqual((await lamp.postProperties({ power: 1 })).code, 200)
    await cloud.advance("29 minutes")
    assert.deepStrictEqual(set, [])
    await cloud.advance("2 minutes")
    assert.deepStrictEqual(set, [{ power: 1 }])
    assert.strictEqual(cloud.now().toISOString(), "2026-01-01T00:31:00.000Z")
  })

  test("handlers return values, promises or refusals; what nobody handles waits", async () => {
    await using cloud = await TestCloud.start()
    const device = await cloud.createDevice()
    const lamp = await cloud.connect(device, {
      on: {
        services: {
          add: async ({ a, b }) => ({ sum: Number(a) + Number(b) }),
          break: () => {
            throw new SimulatedDevice.Refusal({ code: 100_001, reason: "broken" })
          }
        }
      }
    })
    const call = (service: string) =>
      cloud.commands.request("default", device.deviceId, service, { a: 1, b: 2 }, { wait: 5 })
    assert.deepInclude((await call("add")).command, { state: "succeeded", data: { sum: 3 } })
    assert.deepInclude((await call("break")).command, { state: "failed", code: 100_001, message: "broken" })
    for (const service of ["unknown", "constructor"]) {
      await cloud.commands.callService("default", device.deviceId, service, {})
    }
    assert.deepStrictEqual(
      (await lamp.received()).map(({ method }) => method),
      ["thing.service.unknown", "thing.service.constructor"]
    )
    assert.deepStrictEqual(await lamp.received(), [])
    const refused = await cloud.connect(device, { deviceSecret: "other" }).catch((error: unknown) => error)
    assert.isTrue(refused instanceof CloudError && refused.code === "WrongSignature")
    await lamp.disconnect()
    assert.strictEqual(await lamp.closed(), "lost")
  })

  test("a device changes its shadow as often as it likes while time stands still", async () => {
    await using cloud = await TestCloud.start()
    const device = await cloud.createDevice()
    const taken: Array<unknown> = []
    const lamp = await cloud.connect(device, { on: { desired: (values) => void taken.push(values) } })
    const codeOf = async (sent: Promise<{ readonly code: number }>) => (await sent).code
    assert.strictEqual(await codeOf(lamp.reportShadow({ level: 1, power: 0 })), 200)
    assert.strictEqual(await codeOf(lamp.reportShadow({ level: 2 })), 200)
    const both = [lamp.reportShadow({ level: 3 }), lamp.reportShadow({ level: 4 })] as const
    assert.deepStrictEqual(await Promise.all(both.map(codeOf)), [200, 200])
    await cloud.advance("5 seconds") // It hears what is desired.
    assert.strictEqual(await codeOf(lamp.reportShadow({ level: 3 })), 200)
    for (const power of [1, 0, 1]) await cloud.shadows.desire("default", device.deviceId, { power })
    await cloud.advance("1 second")
    assert.deepStrictEqual(taken, [{ power: 1 }, { power: 0 }, { power: 1 }])
    assert.strictEqual(await codeOf(lamp.deleteReported(["level"])), 200)
    assert.strictEqual(await codeOf(lamp.clearDesired()), 200)
    const { shadow } = await cloud.shadows.get("default", device.deviceId)
    assert.hasAllKeys(shadow.reported, ["power"])
    assert.deepStrictEqual(shadow.desired, {})
  })

  test("a gateway carries its sub-devices", async () => {
    await using cloud = await TestCloud.start()
    const gateway = await cloud.connectGateway(
      await cloud.createDevice(await cloud.createProduct({ nodeType: "gateway" }))
    )
    const sub = await cloud.createDevice(await cloud.createProduct({ nodeType: "gateway-sub" }))
    assert.strictEqual((await gateway.add([sub])).code, 200)
    const sensor = await gateway.login(sub)
    assert.strictEqual((await sensor.postProperties({ level: 2 })).code, 200)
    const { device } = await cloud.devices.get("default", { deviceId: sub.deviceId })
    assert.strictEqual(device.status, "online")
  })

  test("closing while the cloud closes resolves when it has ended", async () => {
    const cloud = await TestCloud.start({ mqtt: true })
    const resolved: Array<string> = []
    await Promise.all([
      cloud.close().then(() => resolved.push("first")),
      cloud.close().then(() => resolved.push("second"))
    ])
    assert.deepStrictEqual(resolved, ["first", "second"])
  })

  test("firmware is tested from outside, over MQTT and HTTP", async () => {
    await using cloud = await TestCloud.start({ mqtt: true, http: true })
    const device = await cloud.createDevice()
    const { tls } = cloud.mqtt!
    const reply = await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const firmware = yield* SimulatedDevice.connectMqtt({ ...device, url: tls.url, ca: tls.ca! })
      return yield* firmware.postProperties({ power: 1 })
    })))
    assert.strictEqual(reply.code, 200)
    const { accessKey, url } = cloud.http!
    const response = await fetch(`${url}/openapi/v1/things/${device.deviceId}/shadow`, {
      headers: { authorization: `Bearer ${accessKey}` }
    })
    assert.strictEqual(response.status, 200)
    assert.include(await response.text(), "\"power\"")
    const before = cloud.now()
    await cloud.advance("1 hour")
    assert.isAtLeast(cloud.now().getTime() - before.getTime(), 3_600_000)
  })

  test("a loop over events ends with the cloud", async () => {
    const cloud = await TestCloud.start()
    const lamp = await cloud.connect(await cloud.createDevice())
    const seen: Array<string> = []
    const loop = (async () => {
      for await (const { type } of cloud.subscribe("all", { filter: { kinds: ["PropertiesReported"] } })) {
        seen.push(type)
        // The loop waits for the next event when the cloud ends.
        setImmediate(() => void cloud.close())
      }
    })()
    await lamp.postProperties({ power: 1 })
    // The loop ends the cloud, perhaps before this second has passed.
    await cloud.advance("1 second").catch(() => undefined)
    const end = await loop.catch((error: unknown) => error)
    assert.deepStrictEqual(seen, ["property"])
    assert.deepInclude(end, { message: "The cloud is closed" })
    await cloud.close()
    for (
      const call of [
        () => cloud.products.list("default", { page: 1, pageSize: 1 }),
        () => cloud.createDevice(),
        () => cloud.connect(lamp.device)
      ]
    ) {
      const late = await call().catch((error: unknown) => error)
      assert.deepInclude(late, { message: "The cloud is closed" })
    }
  })

  test("a movement of time that takes long ends with the cloud", async () => {
    const cloud = await TestCloud.start()
    const movement = cloud.advance("5000 weeks").catch((error: unknown) => error)
    await cloud.close()
    assert.deepInclude(await movement, { message: "The cloud is closed" })
    const late = await cloud.advance("1 second").catch((error: unknown) => error)
    assert.deepInclude(late, { message: "The cloud is closed" })
  })

  test("time that is none rejects, and changes nothing", async () => {
    const cloud = await TestCloud.start()
    const before = cloud.now().getTime()
    for (const none of ["1 sec", undefined, null]) {
      const refused = await cloud.advance(none as never).catch(String)
      assert.strictEqual(
        refused,
        `TypeError: time: expected milliseconds or a duration such as "5 minutes", not ${String(none)}`
      )
    }
    for (const back of [-1000, "-5 minutes", -Infinity, NaN] as const) {
      const refused = await cloud.advance(back).catch(String)
      assert.strictEqual(refused, `TypeError: time: expected a duration that is not negative, not ${back}`)
    }
    for (const long of ["Infinity", Infinity, 1e15] as const) {
      const refused = await cloud.advance(long).catch(String)
      assert.strictEqual(refused, `TypeError: time: expected a duration that ends before 2255, not ${long}`)
    }
    await cloud.advance("1 second")
    assert.strictEqual(cloud.now().getTime() - before, 1000)
    await cloud.close()
    for (const time of [new Date("no"), "2026-01-01", 5]) {
      const refused = await TestCloud.start({ time: time as unknown as Date }).catch(String)
      assert.strictEqual(refused, `TypeError: time: expected a valid Date, not ${String(time)}`)
    }
    for (const time of ["1969-12-31T23:59:59.999Z", "2255-01-01T00:00:00.000Z"]) {
      const refused = await TestCloud.start({ time: new Date(time) }).catch(String)
      assert.strictEqual(refused, `TypeError: time: expected a Date from 1970 to 2254, not ${time}`)
    }
    for (const time of ["1970-01-01T00:00:00.000Z", "2254-12-31T00:00:00.000Z"]) {
      await using cloud = await TestCloud.start({ time: new Date(time) })
      const lamp = await cloud.connect(await cloud.createDevice())
      assert.strictEqual((await lamp.postProperties({ power: 1 })).code, 200)
      await cloud.advance("1 minute")
    }
  })

  test("it runs in node:test", () => {
    // `vitest.bundles.ts` makes it of nodeTest/lamp.ts.
    const file = fileURLToPath(new URL("../.bundle/lamp.js", import.meta.url))
    const { status, stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", file], {
      encoding: "utf8",
      env: { ...process.env, NODE_OPTIONS: "" }
    })
    assert.match(stdout, /# pass 1/)
    assert.strictEqual(status, 0)
  })
})
