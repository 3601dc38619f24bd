import { Commands, defaultProjectId, Devices, DeviceSessions } from "@device-cloud/core"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Cloud from "../src/Cloud.ts"
import { LineDevice, type Triple } from "../src/LineDevice.ts"
import { LineTransport } from "../src/LineTransport.ts"

const open = (triple: Triple) =>
  Effect.acquireRelease(
    Effect.map(LineTransport, ({ port }) => LineDevice.open(triple, port)),
    (device) => Effect.sync(() => device.close())
  )

const hear = (device: LineDevice) => Effect.promise(() => device.hear())

/** A device that the cloud has let in. */
const connect = Effect.gen(function*() {
  const device = yield* Fixtures.createDevice()
  const line = yield* open(device)
  assert.deepStrictEqual(yield* hear(line), { welcome: true })
  return { device, line }
})

const post = (id: number, params: object) => ({ id, method: "thing.event.property.post", params })

layer(Cloud.layer, { excludeTestServices: true })("a transport of an application", (it) => {
  it.effect("a report is stored when its reply comes, and reports keep their order", () =>
    Effect.gen(function*() {
      const { device, line } = yield* connect
      for (const id of [1, 2, 3]) line.say(post(id, { power: id }))
      for (const id of [1, 2, 3]) {
        assert.deepStrictEqual(yield* hear(line), { reply: id, code: 200, message: "success", data: {} })
      }
      assert.deepStrictEqual(yield* CloudState.reported(device), { power: 3 })
      assert.deepStrictEqual(yield* CloudState.samples(device, "power"), [1, 2, 3])
    }))

  it.effect("a command reaches the device, and its reply ends it", () =>
    Effect.gen(function*() {
      const { device, line } = yield* connect
      const commands = yield* Commands
      const command = yield* commands.setProperties(defaultProjectId, device.deviceId, { power: 0 })
      const id = String(command.messageId)
      assert.deepStrictEqual(yield* hear(line), {
        number: 1,
        id,
        method: "thing.service.property.set",
        params: { power: 0 }
      })
      line.say({ confirms: 1 })
      yield* CloudState.untilState(command, "acked")
      line.say({ id: 1, method: "thing.service.property.set_reply", params: { id, code: 200, data: {} } })
      yield* CloudState.untilState(command, "succeeded")
    }))

  it.effect("a device is online while its connection is there", () =>
    Effect.gen(function*() {
      const { device, line } = yield* connect
      yield* CloudState.untilStatus(device, "online")
      line.close()
      yield* CloudState.untilStatus(device, "offline")
    }))

  it.effect("a disabled device loses its connection, and is not let in again", () =>
    Effect.gen(function*() {
      const { device, line } = yield* connect
      yield* (yield* Devices).disable(defaultProjectId, device.deviceId)
      // The last message says why.
      assert.propertyVal(yield* hear(line), "method", "thing.disable")
      assert.isUndefined(yield* hear(line))
      assert.deepStrictEqual(yield* hear(yield* open(device)), { refused: "wrong signature" })
    }))

  it.effect("a disabled device that reads nothing loses its connection, too", () =>
    Effect.gen(function*() {
      const { device } = yield* connect
      const { connection } = (yield* DeviceSessions).session(device.deviceId)!
      // More than the buffers of sockets take.
      const message = { id: "1", method: "acme.large", params: "x".repeat(1_000_000) }
      yield* Effect.repeat(connection.deliver(message), { times: 20 })
      yield* (yield* Devices).disable(defaultProjectId, device.deviceId)
      yield* CloudState.untilStatus(device, "offline")
    }))

  it.effect("a wrong signature is refused", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const line = yield* open({ ...device, deviceSecret: "guessed" })
      assert.deepStrictEqual(yield* hear(line), { refused: "wrong signature" })
      assert.isUndefined(yield* hear(line))
    }))

  it.effect("what is no JSON, and a line without end, end the connection", () =>
    Effect.gen(function*() {
      for (const said of ["hello\n", "x".repeat(100_000)]) {
        const { line } = yield* connect
        line.write(said)
        assert.isUndefined(yield* hear(line))
      }
    }))
})

layer(Cloud.layer, { excludeTestServices: true })("a transport of an application, on a new cloud", (it) => {
  it.effect("the confirmation of another message with the id of a command does not confirm the command", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const commands = yield* Commands
      const command = yield* commands.setProperties(defaultProjectId, device.deviceId, { power: 0 })
      const line = yield* open(device)
      const heard = [yield* hear(line), yield* hear(line), yield* hear(line)]
      const id = String(command.messageId)
      const messages = heard.flatMap((line) => line !== undefined && "id" in line ? [line] : [])
      assert.deepStrictEqual(messages.map(({ id, method, number }) => ({ id, method, number })), [
        { id, method: "thing.shadow", number: 1 },
        { id, method: "thing.service.property.set", number: 2 }
      ])
      yield* CloudState.untilState(command, "sent")
      line.say({ confirms: 1 })
      line.say(post(1, { level: 1 }))
      yield* hear(line)
      const { state } = yield* commands.get(defaultProjectId, device.deviceId, command.messageId)
      assert.strictEqual(state, "sent")
      line.say({ confirms: 2 })
      yield* CloudState.untilState(command, "acked")
    }))
})
