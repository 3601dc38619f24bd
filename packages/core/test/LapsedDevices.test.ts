import { type DeviceIdentity, Feed, PresenceStore, Reactions } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as LapsedDevices from "../src/connection/LapsedDevices.ts"

const deviceOf = (i: number) => ({ deviceId: `device-${i}`, productKey: "product" }) as unknown as DeviceIdentity

for (
  const lapse of [
    { _tag: "SightingEnds", judge: { nodeId: "judge", limits: { gap: 1, silence: 1 } } },
    { _tag: "NodeStops", nodeId: "node" }
  ] as const
) {
  it.effect(`devices that come back meanwhile do not end the round early: ${lapse._tag}`, () =>
    Effect.gen(function*() {
      const devices = Array.from({ length: 2500 }, (_, i) => deviceOf(i))
      const online = new Map(devices.map((device) => [device.deviceId, device]))
      let recorded = 0
      const services = Layer.mergeAll(
        Layer.mock(PresenceStore, {
          lapsed: (lapse, limit, after) =>
            Effect.sync(() => {
              const rest = "nodeId" in lapse
                ? devices.slice(devices.findIndex((each) => each.deviceId === after) + 1)
                : devices
              return rest.filter(({ deviceId }) => online.has(deviceId)).slice(0, limit)
            }),
          markOffline: ({ deviceIds: [returned, ...lost] }) =>
            Effect.sync(() => {
              online.delete(returned!)
              return lost.flatMap((deviceId) => {
                const device = online.get(deviceId)!
                online.delete(deviceId)
                return [{ device, version: 1 }]
              })
            })
        }),
        Layer.mock(Feed, {
          wake: () => {},
          commit: (write, eventsOf) =>
            Effect.tap(write, (result) => Effect.sync(() => (recorded += eventsOf(result).length)))
        }),
        Layer.succeed(Reactions, {
          isLoaded: () => true,
          load: () => Effect.void,
          watches: () => false,
          propertyWatch: () => undefined,
          reactTo: () => [],
          wake: () => {}
        })
      )
      const { setOffline } = yield* LapsedDevices.make.pipe(Effect.provide(services))
      yield* setOffline(lapse, "it is lost")
      assert.strictEqual(online.size, 0)
      // One of each of three rounds has come back.
      assert.strictEqual(recorded, 2497)
    }))
}
