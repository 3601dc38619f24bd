import { type ActivityMeasure, ActivityStore, DeviceCloud, Nodes, TroubleStore } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StoragePg from "@device-cloud/storage-pg"
import { Fixtures, SimulatedDevice, TestKeyRing } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { inject } from "vitest"

/** A cloud of its own on the database, as on another machine. Its counts are stored when it closes. */
const cloudOn = (url: Redacted.Redacted) =>
  Layer.build(
    Layer.fresh(
      DeviceCloud.layer.pipe(
        Layer.provideMerge(StoragePg.layer({ url })),
        Layer.provide(TestKeyRing.layer),
        Layer.provideMerge(PlatformNode.layer)
      )
    )
  )

it.live("what two nodes count of a project adds up, and a third one reads it", () =>
  Effect.gen(function*() {
    const url = yield* EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")))
    const scope = yield* Scope.make()
    const nodes = yield* Effect.forEach([0, 1], () => Scope.provide(cloudOn(url), scope))
    const device = yield* Effect.provide(Fixtures.createDevice(), nodes[0]!)
    for (const node of nodes) {
      yield* Effect.gen(function*() {
        const connected = yield* SimulatedDevice.connect(device)
        yield* connected.postProperties({ power: 1 })
        yield* connected.send("thing.no.such.method", {})
      }).pipe(Effect.scoped, Effect.provide(node))
    }
    const { drain } = yield* Effect.provide(Nodes, nodes[0]!)
    const { list, storage } = yield* Effect.provide(Nodes, nodes[1]!)
    yield* drain
    const shown = yield* list
    assert.deepStrictEqual(shown.map(({ isDraining }) => isDraining).toSorted(), [false, true])
    assert.isTrue((yield* storage)?.isReachable)
    yield* Scope.close(scope, Exit.void)
    const { latest } = yield* Effect.provide(TroubleStore, yield* cloudOn(url))
    assert.deepStrictEqual((yield* latest(device.projectId, 0, 10)).map(({ kind, times }) => [kind, times]), [
      ["refused", 2]
    ])
    const store = yield* Effect.provide(ActivityStore, yield* cloudOn(url))
    const minute = Math.floor((yield* Clock.currentTimeMillis) / 60_000)
    const sums = yield* store.read({ projectId: device.projectId, from: minute - 10, to: minute + 1, interval: 1 })
    const total = (wanted: ActivityMeasure) =>
      sums.reduce((total, { count, measure }) => total + (measure === wanted ? count : 0), 0)
    assert.deepStrictEqual([total("accepted"), total("refused")], [2, 2])
  }).pipe(Effect.scoped), 60_000)
