import {
  DeviceId,
  type DeviceIdentity,
  DeviceMethod,
  DeviceMethods,
  DeviceName,
  DeviceReply,
  emptyShadow,
  historyOf,
  ProductKey,
  ProjectId,
  type Shadow,
  type UplinkMessage
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Result, Schema } from "effect"
import { DeviceState } from "../src/uplink/DeviceState.ts"
import { commitOf, type PlacedUpdate } from "../src/uplink/DeviceUpdates.ts"
import * as UplinkBatch from "../src/uplink/UplinkBatch.ts"

const deviceOf = (deviceName: string): DeviceIdentity => ({
  deviceId: DeviceId.make(`id-${deviceName}`),
  productKey: ProductKey.make("product0001"),
  deviceName: DeviceName.make(deviceName),
  projectId: ProjectId.make("project"),
  validateType: "none"
})

const lamp = deviceOf("lamp")
const gateway = deviceOf("gateway")
const sensor = deviceOf("sensor")
const stranger = deviceOf("stranger")

const attachments = new Map([["product0001/sensor", { gateway, subDevice: sensor }]])

const share = () => Effect.succeed([])
const isName = Schema.is(Schema.Struct({ productKey: ProductKey, deviceName: DeviceName }))

const methods = DeviceMethods.layer([
  DeviceMethod.answer({ name: "test.answer", reply: () => DeviceReply.success("answered") }),
  DeviceMethod.update({
    name: "test.set",
    decode: Schema.Finite,
    update: (value, state, { receivedAt }) =>
      DeviceReply.success(state.report([["value", { value, time: 1 }]], receivedAt))
  }),
  DeviceMethod.update({
    name: "test.throw",
    decode: Schema.Unknown,
    update: (_, state) => {
      state.report([["half", { value: 1, time: 1 }]], 1)
      throw new Error("update")
    }
  }),
  DeviceMethod.update({
    name: "test.undecodable",
    decode: () => {
      throw new Error("decode")
    },
    update: () => DeviceReply.success({})
  }),
  DeviceMethod.updates({
    name: "test.pack",
    names: (params) => isName(params) ? [params] : [],
    updates: ({ device, params }, find) => {
      const subDevice = isName(params) ? find(device, params) : undefined
      return subDevice === undefined
        ? Result.fail(DeviceReply.noTopology)
        : Result.succeed([
          { device, update: () => DeviceReply.success("first") },
          { device: subDevice, update: () => DeviceReply.failure(460, "second") }
        ])
    }
  }),
  DeviceMethod.progress({
    name: "test.reply",
    decode: ({ device: { deviceId }, receivedAt }) =>
      Result.succeed({ deviceId, messageId: 7, state: "succeeded", code: 200, message: "", data: {}, at: receivedAt })
  }),
  DeviceMethod.requests({ name: "test.shared", decode: Schema.Unknown, handle: share }),
  DeviceMethod.requests({ name: "test.sharedToo", decode: Schema.Unknown, handle: share }),
  DeviceMethod.request({
    name: "test.request",
    decode: Schema.Finite,
    handle: () => Effect.succeed(DeviceReply.success({}))
  })
]).pipe(Layer.provideMerge(DeviceMethods.layerEmpty))

const say = (
  device: DeviceIdentity,
  method: string,
  params: unknown = 1,
  subDevice?: DeviceIdentity
): UplinkMessage => ({ device, method, params, receivedAt: 1, ...subDevice === undefined ? {} : { subDevice } })

/** Sorts items, and returns the batch with what methods have thrown. */
const sort = (items: ReadonlyArray<UplinkBatch.UplinkItem>) =>
  Effect.map(DeviceMethods, (registry) => {
    const defects: Array<unknown> = []
    return { ...UplinkBatch.sort(items, registry, attachments, (defect) => defects.push(defect)), defects }
  })

const open = (device: DeviceIdentity, shadow: Shadow, follows: boolean) =>
  new DeviceState(
    device,
    shadow,
    undefined,
    {
      watches: () => false,
      propertyWatch: () => undefined,
      reactTo: () => []
    },
    follows
  )

const codes = (replies: ReadonlyArray<DeviceReply.DeviceReply>) => replies.map(({ code }) => code)

/** Commits the devices of a batch to empty shadows; `gone` do not exist. */
const commit = ({ devices }: UplinkBatch.UplinkBatch, gone: ReadonlyArray<DeviceIdentity> = []) =>
  devices.map((updates) => {
    if (gone.includes(updates.device)) return Option.none()
    const [result] = commitOf(updates, open).update(emptyShadow(updates.device.deviceId))
    return Option.some(result)
  })

const placesFrom = (update: PlacedUpdate | undefined): ReadonlyArray<number> =>
  update === undefined ? [] : [update.place, ...placesFrom(update.next)]

layer(methods)("a batch of the uplink", (it) => {
  it.effect("each item goes where its method says, and keeps its place", () =>
    Effect.gen(function*() {
      const step = {
        deviceId: lamp.deviceId,
        messageId: 3,
        state: "acked",
        code: null,
        message: "",
        data: {},
        at: 1
      } as const
      const batch = yield* sort([
        say(lamp, "test.set", 1),
        say(lamp, "test.answer"),
        step,
        say(stranger, "test.set", 2),
        say(lamp, "test.request"),
        say(lamp, "test.set", 3),
        say(lamp, "test.reply")
      ])
      assert.deepStrictEqual(
        batch.devices.map(({ device, first }) => [device, placesFrom(first)]),
        [[lamp, [0, 5]], [stranger, [3]]]
      )
      assert.deepStrictEqual(batch.requests.map(({ place, request }) => [place, request]), [[4, 1]])
      assert.deepStrictEqual(batch.progress.map(({ messageId }) => messageId), [3, 7])
      assert.deepStrictEqual(batch.happened.map(({ _tag }) => _tag), ["CommandReplied"])
      assert.deepStrictEqual(batch.replies[1], DeviceReply.success("answered"))
      // A request without a reply of its handler has failed.
      assert.strictEqual(batch.replies[4]!.code, 500)
      assert.deepStrictEqual(batch.defects, [])
    }))

  it.effect("refusals concern one message each", () =>
    Effect.gen(function*() {
      const batch = yield* sort([
        say(lamp, "test.unknown"),
        say(lamp, "test.set", "text"),
        say(lamp, "test.undecodable"),
        say(stranger, "test.set", 1, sensor),
        say(gateway, "test.set", 1, sensor)
      ])
      assert.deepStrictEqual(codes(batch.replies), [6203, 460, 500, 6401, 200])
      assert.deepStrictEqual(batch.devices.map(({ device }) => device), [sensor])
      assert.strictEqual(batch.defects.length, 1)
    }))

  it.effect("the sub-devices that messages name are known before the batch is sorted", () =>
    Effect.gen(function*() {
      const registry = yield* DeviceMethods
      const { deviceName, productKey } = stranger
      const names = UplinkBatch.namesIn(
        [
          say(gateway, "test.set", 1, sensor),
          say(gateway, "test.pack", { productKey, deviceName }),
          say(gateway, "test.unknown")
        ],
        registry,
        () => assert.fail("no method throws")
      )
      assert.deepStrictEqual(names.map(({ deviceName }) => deviceName), ["sensor", "stranger"])
    }))

  it.effect("an update that throws is refused alone and leaves nothing behind", () =>
    Effect.gen(function*() {
      const batch = yield* sort([say(lamp, "test.set", 1), say(lamp, "test.throw"), say(lamp, "test.set", 2)])
      const stored = emptyShadow(lamp.deviceId)
      const { deviceId, update } = commitOf(batch.devices[0]!, open)
      assert.strictEqual(deviceId, lamp.deviceId)
      const [{ defects, reacts, replies }, shadow, facts] = update(stored)
      assert.deepStrictEqual(codes(replies), [200, 500, 200])
      assert.deepStrictEqual(defects.map(String), ["Error: update"])
      assert.deepStrictEqual(shadow.reported, { value: { value: 2, time: 1 } })
      assert.deepStrictEqual(historyOf(facts.happened).samples.map(({ propertyId, value }) => [propertyId, value]), [
        ["value", 1],
        ["value", 2]
      ])
      assert.strictEqual(facts.happened.length, 2)
      assert.strictEqual(reacts, false)
      // The store may repeat the transaction with a newer shadow.
      assert.deepStrictEqual(update(stored), update(stored))
    }))

  it.effect("requests run together with their neighbours of the same handler", () =>
    Effect.gen(function*() {
      const { requests } = yield* sort([
        say(lamp, "test.shared"),
        say(stranger, "test.sharedToo"),
        say(lamp, "test.request"),
        say(lamp, "test.shared")
      ])
      assert.deepStrictEqual(
        UplinkBatch.runsOf(requests).map((run) => run.map(({ place }) => place)),
        [[0, 1], [2], [3]]
      )
      assert.deepStrictEqual(UplinkBatch.runsOf([]), [])
    }))

  it.effect("replies of devices get into their places; a device that does not exist is not found", () =>
    Effect.gen(function*() {
      const batch = yield* sort([
        say(stranger, "test.set", 1),
        say(lamp, "test.set", 1),
        say(lamp, "test.throw"),
        say(lamp, "test.answer")
      ])
      UplinkBatch.settle(batch, commit(batch, [stranger]))
      assert.deepStrictEqual(codes(batch.replies), [6100, 200, 500, 200])
    }))

  it.effect("a message about several devices gets the first refusal as its reply", () =>
    Effect.gen(function*() {
      const { deviceName, productKey } = sensor
      const batch = yield* sort([
        say(gateway, "test.pack", { productKey, deviceName }),
        say(stranger, "test.pack", { productKey, deviceName })
      ])
      UplinkBatch.settle(batch, commit(batch))
      assert.deepStrictEqual(batch.replies, [DeviceReply.failure(460, "second"), DeviceReply.noTopology])
    }))
})
