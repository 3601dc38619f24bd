import { Fixtures, SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { test } from "vitest"
import type { Outcome } from "../src/conformance/Check.ts"
import { checkCloud } from "../src/conformance/CloudChecks.ts"
import { checkDevice } from "../src/conformance/DeviceChecks.ts"

test("a cloud: everything of the protocol works", async () => {
  await using cloud = await TestCloud.start({ mqtt: true, http: true })
  const seen: Array<Outcome> = []
  const { accessKey, url: httpUrl } = cloud.http!
  await Effect.runPromise(Effect.scoped(checkCloud(
    { url: cloud.mqtt!.tcp.url, httpUrl, accessKey },
    (outcome) => Effect.sync(() => void seen.push(outcome))
  )))
  assert.deepStrictEqual(seen.filter(({ result }) => result !== "works"), [])
  assert.lengthOf(seen, 20)
  const { items } = await cloud.products.list("default", { page: 1, pageSize: 10 })
  assert.deepStrictEqual(items, [])
})

test("a cloud that does not know the device: what fails is said, and the rest is left out", async () => {
  await using cloud = await TestCloud.start({ mqtt: true })
  const device = { productKey: "none", deviceName: "nobody", deviceSecret: "secret" }
  const seen: Array<Outcome> = []
  await Effect.runPromise(Effect.scoped(checkCloud(
    { url: cloud.mqtt!.tcp.url, device },
    (outcome) => Effect.sync(() => void seen.push(outcome))
  )))
  assert.deepStrictEqual(seen.map(({ result }) => result), ["works", "fails", "fails", "fails", "skipped"])
})

layer(MqttTestServer.layerMemory, { excludeTestServices: true })("conformance of a device", (it) => {
  const outcomes = Effect.fnUntraced(function*(on: SimulatedDevice.Handlers, isAwake: boolean) {
    const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ validateType: "none" }))
    const { url } = (yield* MqttTestServer).tcp
    const life = Effect.gen(function*() {
      const connected = yield* SimulatedDevice.connectMqtt({ ...device, url, on })
      yield* connected.inform("1.2.0")
      yield* connected.postProperties({ level: 3 })
      yield* connected.closed
    })
    if (isAwake) yield* Effect.forkScoped(Effect.ignore(Effect.repeat(Effect.scoped(life), Schedule.forever)))
    const seen: Array<Outcome> = []
    const report = (outcome: Outcome) => Effect.sync(() => void seen.push(outcome))
    yield* checkDevice(device, { patience: isAwake ? 20 : 0.2, service: "reset" }, report)
    return seen
  })

  it.effect("everything works of a device that does everything", () =>
    Effect.gen(function*() {
      const { Refusal } = SimulatedDevice
      const seen = yield* outcomes({
        set: () => Effect.void,
        desired: () => Effect.void,
        // That is an answer, too.
        services: { reset: () => Effect.fail(new Refusal({ code: 100_000, reason: "not now" })) }
      }, true)
      assert.deepStrictEqual(
        seen.filter(({ result }) => result !== "works").map(({ detail, name }) => `${name}: ${detail}`),
        []
      )
      assert.lengthOf(seen, 7)
    }))

  it.effect("a device that does not connect is said to", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* outcomes({}, false)).map(({ result }) => result), ["fails", "skipped"])
    }))
})
