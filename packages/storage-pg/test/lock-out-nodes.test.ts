import { connectText, type Device, DeviceAuthenticator, DeviceCloud, Mac } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, TestKeyRing } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, type Redacted } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

/** A cloud of its own on the database, as on another machine. */
const cloudOn = (url: Redacted.Redacted) =>
  Layer.build(
    Layer.fresh(
      DeviceCloud.layer.pipe(
        Layer.provide(StoragePg.layer({ url })),
        Layer.provide(TestKeyRing.layer),
        Layer.provideMerge(PlatformNode.layer)
      )
    )
  )

const connect = Effect.fnUntraced(
  function*({ deviceName, deviceSecret, productKey }: Device, address: string, secret = deviceSecret) {
    const claimed = { clientId: "c", deviceName, productKey }
    const signature = (yield* Mac).sign("hmacsha1", secret, connectText(claimed))
    const authenticator = yield* DeviceAuthenticator
    yield* authenticator.authenticate({ ...claimed, address, signMethod: "hmacsha1", signature })
    return "accepted"
  },
  Effect.catch(({ _tag }) => Effect.succeed(_tag))
)

it.live("what is guessed at one node counts at the others", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const nodes = [yield* cloudOn(url), yield* cloudOn(url)] as const
    const createDevice = Effect.provide(Fixtures.createDevice(), nodes[0])
    // A node hears the others some time after its start.
    let n = 0
    yield* eventually(Effect.gen(function*() {
      const probe = yield* createDevice
      const address = `203.0.113.${++n}`
      for (let i = 0; i < 10; i++) yield* Effect.provide(connect(probe, address, "wrong"), nodes[0])
      yield* eventually(
        Effect.provide(connect(probe, address), nodes[1]),
        { until: (outcome) => outcome === "TooManyWrongSignatures", timeout: "1 second" }
      )
    }))

    // Half of the limit at each node is the limit at both; another address is not refused.
    const device = yield* createDevice
    for (const node of nodes) {
      for (let i = 0; i < 5; i++) {
        assert.strictEqual(yield* Effect.provide(connect(device, "192.0.2.1", "wrong"), node), "WrongSignature")
      }
    }
    for (const node of nodes) {
      yield* eventually(
        Effect.provide(connect(device, "192.0.2.1"), node),
        { until: (outcome) => outcome === "TooManyWrongSignatures" }
      )
      assert.strictEqual(yield* Effect.provide(connect(device, "192.0.2.2"), node), "accepted")
    }
  }).pipe(Effect.scoped), 60_000)
