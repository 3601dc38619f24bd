import {
  defaultProjectId,
  defineThingModel,
  InvalidThingModel,
  ModelFormat,
  modelTypes,
  type Reported,
  type ServiceInputs,
  ThingModels,
  TypedDevices,
  type Writable
} from "@device-cloud/core"
import { type SimulatedDevice, TestCloud } from "@device-cloud/testing"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Fiber, Queue, Stream } from "effect"
import { readFileSync } from "node:fs"
import { expectTypeOf } from "vitest"

const heater = defineThingModel({
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool" } },
    {
      id: "mode",
      name: "Mode",
      accessMode: "rw",
      dataType: { type: "enum", specs: { 0: "day", 1: "night", 2: "away" } }
    },
    { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "double", min: -40, max: 80 } },
    { id: "pin", name: "Pin", accessMode: "w", dataType: { type: "text", length: 8 } },
    {
      id: "plan",
      name: "Plan",
      accessMode: "rw",
      dataType: {
        type: "array",
        size: 24,
        elementType: "struct",
        specs: [
          { id: "hour", name: "Hour", dataType: { type: "int", min: 0, max: 23 } },
          { id: "since", name: "Since", dataType: { type: "date" } }
        ]
      }
    }
  ],
  events: [
    {
      id: "overheated",
      name: "Overheated",
      eventType: "alert",
      outputData: [{ id: "degrees", name: "Degrees", dataType: { type: "double" } }]
    },
    { id: "opened", name: "Opened" }
  ],
  services: [
    {
      id: "heat",
      name: "Heat",
      callType: "sync",
      inputData: [{ id: "minutes", name: "Minutes", dataType: { type: "int", min: 1, max: 60 } }],
      outputData: [{ id: "until", name: "Until", dataType: { type: "date" } }]
    },
    { id: "stop", name: "Stop" }
  ]
})
type Heater = typeof heater

it("types follow from the definition", () => {
  expectTypeOf<Reported<Heater>>().toEqualTypeOf<{
    readonly power: 0 | 1
    readonly mode: 0 | 1 | 2
    readonly temperature: number
    readonly plan: ReadonlyArray<{ readonly hour?: number; readonly since?: string }>
  }>()
  expectTypeOf<Writable<Heater>>().toEqualTypeOf<{
    readonly power: 0 | 1 | boolean
    readonly mode: 0 | 1 | 2
    readonly pin: string
    readonly plan: ReadonlyArray<{ readonly hour?: number; readonly since?: string | number }>
  }>()
  expectTypeOf<ServiceInputs<Heater>>().toEqualTypeOf<{
    readonly heat: { readonly minutes: number }
    readonly stop: {}
  }>()
  const labelled = defineThingModel({
    properties: [{
      id: "x",
      name: "X",
      accessMode: "r",
      dataType: { type: "enum", specs: { "-1": "low", "7": "high" } }
    }]
  })
  expectTypeOf<Reported<typeof labelled>>().toEqualTypeOf<{ readonly x: -1 | 7 }>()
})

it("a definition is checked as an import is", () => {
  assert.throws(
    () => defineThingModel({ properties: [{ id: "set", name: "", accessMode: "r", dataType: { type: "date" } }] }),
    InvalidThingModel,
    "properties.0.id: set is reserved; properties.0.name: expected text of 1 to 30 characters"
  )
  assert.throws(() =>
    // @ts-expect-error there is no such type
    defineThingModel({ properties: [{ id: "a", name: "A", accessMode: "r", dataType: { type: "color" } }] })
  )
})

// What must not compile; it is never called.
export const refused = (heaters: TypedDevices.TypedDevices<Heater>, id: SimulatedDevice.SimulatedDevice) => {
  const { deviceId } = id.device
  // @ts-expect-error there is no such property
  void heaters.setProperties(defaultProjectId, deviceId, { volume: 1 })
  // @ts-expect-error it is read-only
  void heaters.setProperties(defaultProjectId, deviceId, { temperature: 20 })
  // @ts-expect-error it is a number of the enum
  void heaters.setProperties(defaultProjectId, deviceId, { mode: 3 })
  // @ts-expect-error it has another type
  void heaters.desire(defaultProjectId, deviceId, { pin: 1234 })
  // @ts-expect-error an input is missing
  void heaters.services.heat(defaultProjectId, deviceId, {})
  // @ts-expect-error there is no such service
  void heaters.services.cool
  // @ts-expect-error it cannot be read
  void Effect.map(heaters.shadow(defaultProjectId, deviceId), ({ reported }) => reported.pin)
}

const setUp = Effect.gen(function*() {
  const cloud = yield* TestCloud
  const product = yield* cloud.createProduct()
  yield* (yield* ThingModels).importFrom(
    defaultProjectId,
    product.productKey,
    "metadata",
    JSON.stringify(heater.definition)
  )
  const device = yield* cloud.createDevice(product)
  return { product, device, connected: yield* cloud.connect(device), heaters: yield* TypedDevices.of(heater) }
})

layer(TestCloud.layer, { excludeTestServices: true })("typed devices", (it) => {
  it.effect("are set, desired and read with the types of the model", () =>
    Effect.gen(function*() {
      const { connected, device: { deviceId }, heaters } = yield* setUp
      const { command } = yield* heaters.setProperties(defaultProjectId, deviceId, { power: true, mode: 1 })
      assert.deepStrictEqual(command.params, { power: 1, mode: 1 })
      yield* heaters.desire(defaultProjectId, deviceId, { mode: 2, pin: null })
      yield* connected.postProperties({ power: 1, temperature: 21.5, plan: [{ hour: 7 }] })
      const { desired, reported } = yield* heaters.shadow(defaultProjectId, deviceId)
      assert.strictEqual(reported.temperature?.value, 21.5)
      assert.strictEqual(reported.plan?.value[0]?.hour, 7)
      assert.strictEqual(desired.mode?.value, 2)
      expectTypeOf(reported.power).toEqualTypeOf<{ readonly value: 0 | 1; readonly time: number } | undefined>()
    }))

  it.effect("are called with typed inputs, and give typed outputs if they fit", () =>
    Effect.gen(function*() {
      const { connected, device: { deviceId }, heaters } = yield* setUp
      const answerWith = (data: { readonly until: string | boolean }) =>
        Effect.gen(function*() {
          const call = yield* Effect.forkChild(heaters.services.heat(defaultProjectId, deviceId, { minutes: 5 }))
          let command = yield* Queue.take(connected.received)
          while (command.method !== "thing.service.heat") command = yield* Queue.take(connected.received)
          assert.deepStrictEqual(command.params, { minutes: 5 })
          yield* connected.answer(command, 200, data)
          return (yield* Fiber.join(call)).outputs
        })
      const outputs = yield* answerWith({ until: "1795328401356" })
      expectTypeOf(outputs).toEqualTypeOf<{ readonly until?: string } | undefined>()
      assert.deepStrictEqual(outputs, { until: "1795328401356" })
      assert.isUndefined(yield* answerWith({ until: true }))
    }))

  it.effect("are heard with the types of the model", () =>
    Effect.gen(function*() {
      const { connected, device, heaters, product } = yield* setUp
      yield* connected.postProperties({ temperature: 21 })
      yield* connected.send("thing.event.overheated.post", { value: { degrees: 81.5 }, time: 1 })
      const heard = yield* heaters.events({
        projectId: defaultProjectId,
        productKey: product.productKey,
        after: ""
      }).pipe(Stream.take(2), Stream.runCollect)
      const [report, alarm] = heard
      assert(report?.id === null && alarm?.id === "overheated")
      expectTypeOf(report.values.temperature).toEqualTypeOf<number | undefined>()
      expectTypeOf(alarm.outputs).toEqualTypeOf<{ readonly degrees?: number }>()
      assert.deepStrictEqual(report.values, { temperature: 21 })
      assert.deepStrictEqual(alarm.outputs, { degrees: 81.5 })
      assert.strictEqual(alarm.origin.deviceId, device.deviceId)
    }))

  it.effect("have no value for an id that every object inherits, until the device reports one", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const product = yield* cloud.createProduct()
      const field = { id: "constructor", name: "Constructor", dataType: { type: "int" } } as const
      const machine = defineThingModel({
        properties: [{ ...field, accessMode: "r" }, { ...field, id: "speed", accessMode: "r" }],
        events: [{ id: "built", name: "Built", outputData: [field] }],
        services: [{ id: "build", name: "Build", callType: "sync", outputData: [field] }]
      })
      yield* (yield* ThingModels).importFrom(
        defaultProjectId,
        product.productKey,
        "metadata",
        JSON.stringify(machine.definition)
      )
      const device = yield* cloud.createDevice(product)
      const connected = yield* cloud.connect(device, { on: { services: { build: () => Effect.succeed({}) } } })
      const machines = yield* TypedDevices.of(machine)
      yield* connected.postProperties({ speed: 1 })
      yield* connected.send("thing.event.built.post", { value: {}, time: 1 })
      const before = yield* machines.shadow(defaultProjectId, device.deviceId)
      assert.isUndefined(before.reported.constructor)
      assert.isUndefined(before.desired.constructor)
      const { outputs } = yield* machines.services.build(defaultProjectId, device.deviceId, {})
      assert.isDefined(outputs)
      assert.isUndefined(outputs?.constructor)
      const [report, built] = yield* machines.events({
        projectId: defaultProjectId,
        productKey: product.productKey,
        after: ""
      }).pipe(Stream.take(2), Stream.runCollect)
      assert(report?.id === null && built?.id === "built")
      assert.isUndefined(report.values.constructor)
      assert.isUndefined(built.outputs.constructor)

      yield* connected.postProperties({ constructor: 7 })
      const { reported } = yield* machines.shadow(defaultProjectId, device.deviceId)
      assert.strictEqual(reported.constructor?.value, 7)
    }))
})

it("the source of a model defines the same model", () => {
  const text = readFileSync(new URL("./fixtures/air-conditioner.tsl.json", import.meta.url), "utf8")
  const { model } = Effect.runSync(ModelFormat.decodeText("tsl", text))
  const source = modelTypes(model, "air-conditioner")
  const [, name, definition] = /^export const (\w+) = defineThingModel\((.*)\)\n$/ms.exec(source) ?? []
  assert.strictEqual(name, "air_conditioner")
  for (const word of ["switch", "class", "let", "await", "defineThingModel"]) {
    assert.include(modelTypes(model, word), `export const _${word} = `)
  }
  assert.deepStrictEqual(defineThingModel(JSON.parse(definition!)).validator.model, model)
})
