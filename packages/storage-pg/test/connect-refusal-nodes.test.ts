import { ConnectRefusals, DeviceCloud } from "@device-cloud/core"
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

it.live("each node tells what the others have refused, and a new one, too", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const nodes = [yield* cloudOn(url), yield* cloudOn(url)] as const
    const device = yield* Effect.provide(Fixtures.createDevice(), nodes[0])
    for (const node of nodes) {
      const { note } = yield* Effect.provide(ConnectRefusals, node)
      for (let i = 0; i < 2; i++) {
        note({ device, address: "192.0.2.1", reason: "wrong signature", returnCode: 4 })
      }
    }
    for (const node of [...nodes, yield* cloudOn(url)]) {
      const { ofDevice } = yield* Effect.provide(ConnectRefusals, node)
      const [refusal, ...others] = yield* eventually(
        ofDevice(device.projectId, device.deviceId),
        { until: ([found]) => found?.times === 4 }
      )
      assert.deepStrictEqual([refusal!.reason, others], ["wrong signature", []])
    }
  }).pipe(Effect.scoped), 60_000)
