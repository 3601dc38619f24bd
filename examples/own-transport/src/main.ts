/**
 * Starts the cloud. A device reports, and carries out a command.
 */
import { Commands, defaultProjectId, Shadows } from "@device-cloud/core"
import { Fixtures } from "@device-cloud/testing"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import * as Cloud from "./Cloud.ts"
import { LineDevice } from "./LineDevice.ts"
import { LineTransport } from "./LineTransport.ts"

const main = Effect.gen(function*() {
  const device = yield* Fixtures.createDevice()
  const lamp = yield* Effect.acquireRelease(
    Effect.map(LineTransport, ({ port }) => LineDevice.open(device, port)),
    (lamp) => Effect.sync(() => lamp.close())
  )
  const hear = Effect.promise(() => lamp.hear())
  yield* Console.log("The device hears:", yield* hear)

  lamp.say({ id: 1, method: "thing.event.property.post", params: { power: 1 } })
  yield* Console.log("The device hears:", yield* hear)

  yield* (yield* Commands).setProperties(defaultProjectId, device.deviceId, { power: 0 })
  const command = yield* hear
  yield* Console.log("The device hears:", command)
  if (command !== undefined && "id" in command) {
    lamp.say({ confirms: command.number })
    lamp.say({ id: 2, method: `${command.method}_reply`, params: { id: command.id, code: 200, data: {} } })
    lamp.say({ id: 3, method: "thing.event.property.post", params: { power: 0 } })
  }
  yield* hear
  yield* hear

  const { shadow } = yield* (yield* Shadows).get(defaultProjectId, device.deviceId)
  yield* Console.log("The cloud knows:", shadow.reported["power"]?.value)
})

main.pipe(Effect.scoped, Effect.provide(Cloud.layer), NodeRuntime.runMain)
