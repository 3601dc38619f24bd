/**
 * Devices whose connections the cloud ends at a broker that does not do so at once.
 */
import { defaultProjectId, DeviceCloud, Devices } from "@device-cloud/core"
import {
  type BrokerConnection,
  BrokerLink,
  BrokerUnreachable,
  MqttBridge,
  type ShareHandler
} from "@device-cloud/mqtt-bridge"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually, Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Scope } from "effect"

/** A cloud with one share of a broker, which ends connections only while it `isReached`. */
const carrying = Effect.gen(function*() {
  const shares: Array<ShareHandler> = []
  const tried: Array<string> = []
  const state = { isReached: false }
  const share = yield* Scope.fork(yield* Effect.scope)
  const link = Layer.succeed(BrokerLink, {
    serve: (open) => Effect.map(Scope.provide(open(0), share), (handler) => void shares.push(handler)),
    isCarrying: () => true,
    nodes: () => 1,
    publish: () => Effect.succeed(true),
    send: () => {},
    disconnect: (clientId) =>
      Effect.suspend(() => {
        tried.push(clientId)
        return state.isReached ? Effect.void : Effect.fail(new BrokerUnreachable({ message: "connack timeout" }))
      })
  })
  const context = yield* Layer.build(
    MqttBridge.layer.pipe(
      Layer.provide(link),
      Layer.provideMerge(DeviceCloud.layer),
      Layer.provideMerge(StorageMemory.layer),
      Layer.provideMerge(PlatformNode.layer),
      Layer.provide(Logger.layer([]))
    )
  )
  return { context, handler: shares[0]!, loseShare: Scope.close(share, Exit.void), state, tried }
})

const patient = { timeout: "40 seconds" } as const

/** A device that is disabled when, or after, the cloud hears of its connection. */
const expelled = Effect.fnUntraced(function*(
  { handler, tried }: Pick<Effect.Success<typeof carrying>, "handler" | "tried">,
  wasAttached: boolean
) {
  const devices = yield* Devices
  const { deviceId, deviceName, productKey } = yield* Fixtures.createDevice(
    yield* Fixtures.createProduct({ validateType: "none" })
  )
  const settled: Array<string> = []
  const notice: BrokerConnection = {
    id: "<0.1.0>",
    device: { productKey, deviceName },
    clientId: `${productKey}.${deviceName}`,
    ip: "192.0.2.7",
    since: 0,
    settle: () => void settled.push(deviceName)
  }
  const disable = devices.disable(defaultProjectId, deviceId)
  if (!wasAttached) yield* disable
  handler.connected(notice)
  if (wasAttached) {
    yield* eventually(devices.get(defaultProjectId, { deviceId }), {
      until: ({ device }) => device.status === "online"
    })
    yield* disable
  }
  yield* eventually(Effect.sync(() => tried.length), { until: (count) => count > 0, ...patient })
  return { notice, settled }
})

it.live.each([["after", true], ["before", false]] as const)(
  "a device that is disabled %s it is attached loses its connection when the broker can be reached again",
  ([, wasAttached]) =>
    Effect.gen(function*() {
      const { context, state, ...link } = yield* carrying
      const { notice, settled } = yield* Effect.provide(expelled(link, wasAttached), context)
      // Until then the next node of the share gets the notice.
      assert.deepStrictEqual(settled, [])
      state.isReached = true
      yield* eventually(Effect.sync(() => settled), { until: ({ length }) => length > 0, ...patient })
      assert.deepStrictEqual(link.tried, [notice.clientId, notice.clientId])
    }),
  60_000
)

it.live("a connection that has ended by itself is not ended again", () =>
  Effect.gen(function*() {
    const { context, state, ...link } = yield* carrying
    const { notice, settled } = yield* Effect.provide(expelled(link, true), context)
    link.handler.disconnected(notice.id)
    state.isReached = true
    yield* eventually(Effect.sync(() => settled), { until: ({ length }) => length > 1, ...patient })
    assert.deepStrictEqual(link.tried, [notice.clientId])
  }), 60_000)

it.live("a node that has lost the share leaves the connection to the next one", () =>
  Effect.gen(function*() {
    const { context, loseShare, state, ...link } = yield* carrying
    const { notice, settled } = yield* Effect.provide(expelled(link, true), context)
    yield* loseShare
    state.isReached = true
    yield* eventually(Effect.sync(() => settled), { until: ({ length }) => length > 0, ...patient })
    assert.deepStrictEqual(link.tried, [notice.clientId])
  }), 60_000)
