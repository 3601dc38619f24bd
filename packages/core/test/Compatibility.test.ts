import {
  type Audience,
  compatible,
  type DataType,
  defineThingModel,
  type Json,
  Misfit,
  ModelValidator,
  type PropertyElement,
  type ThingModel
} from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"

// All types of a small world, so that many are a part of another, and values at their bounds.

const numbers: ReadonlyArray<DataType> = (["int", "float", "double"] as const).flatMap((type) => [
  { type },
  { type, min: 0 },
  { type, max: 3 },
  { type, min: -2, max: 1 }
])
const simple: ReadonlyArray<DataType> = [
  ...numbers,
  { type: "bool", specs: { 0: "off", 1: "on" } },
  { type: "enum", specs: { 0: "a", 1: "b" } },
  { type: "enum", specs: { 0: "a", 1: "b", 2: "c" } },
  { type: "text", length: 1 },
  { type: "text", length: 3 },
  { type: "date" }
]
const [whole, upToThree, , bounded] = numbers as [DataType, DataType, DataType, DataType]
const member = (id: string, dataType: DataType) => ({ id, name: id, dataType })
const types: ReadonlyArray<DataType> = [
  ...simple,
  { type: "struct", specs: [member("a", whole)] },
  { type: "struct", specs: [member("a", bounded)] },
  { type: "struct", specs: [member("a", whole), member("b", { type: "text", length: 3 })] },
  { type: "array", size: 1, item: whole },
  { type: "array", size: 2, item: whole },
  { type: "array", size: 2, item: upToThree }
]
const pairsOfTypes = types.flatMap((before) => types.map((after) => [before, after] as const))

const scalars: ReadonlyArray<Json> = [-3, -2, 0, 0.5, 1, 2, 3, 4, 3e9, 1e39, true, "", "1", "abc", "abcd"]
const values: ReadonlyArray<Json> = [
  ...scalars,
  ...scalars.flatMap((a) => [{ a }, { b: a }, [a]]),
  { a: 1, b: "abc" },
  [0, 1],
  [0, 1, 1]
]

interface Part {
  readonly property?: Pick<PropertyElement, "accessMode" | "dataType">
  readonly output?: DataType
  readonly input?: DataType
}

const common = { name: "X", required: false, standard: false, desc: "" }
const fieldOf = (dataType: DataType | undefined) => dataType === undefined ? [] : [member("x", dataType)]

const modelOf = ({ input, output, property }: Part): ThingModel => ({
  properties: property === undefined ? [] : [{ ...common, id: "p", ...property }],
  events: [{ ...common, id: "e", eventType: "info", outputData: fieldOf(output) }],
  services: [{ ...common, id: "s", callType: "async", inputData: fieldOf(input), outputData: [] }]
})

/** Each change of a model of one property, output or input. */
const changes: ReadonlyArray<readonly [ThingModel, ThingModel]> = (() => {
  const modes = ["r", "w", "rw"] as const
  const parts: ReadonlyArray<(dataType: DataType) => Part> = [(output) => ({ output }), (input) => ({ input })]
  return [
    ...pairsOfTypes.flatMap(([before, after]) => [
      ...modes.flatMap((was) =>
        modes.map((is) =>
          [
            { property: { accessMode: was, dataType: before } },
            { property: { accessMode: is, dataType: after } }
          ] as const
        )
      ),
      ...parts.map((part) => [part(before), part(after)] as const)
    ]),
    ...types.flatMap((dataType) => [
      [{ property: { accessMode: "rw" as const, dataType } }, {}] as const,
      ...parts.flatMap((part) => [[part(dataType), {}] as const, [{}, part(dataType)] as const])
    ])
  ].map(([before, after]) => [modelOf(before), modelOf(after)] as const)
})()

/** What a model admits, each as a function from a value. */
const admits = (model: ThingModel) => {
  const validator = ModelValidator.make(model, 1)
  const fits = (result: Json | Misfit | undefined) => result !== undefined && !(result instanceof Misfit)
  return {
    report: (value: Json) => fits(validator.reported("p", value)),
    set: (value: Json) => fits(validator.desired("p", value)),
    event: (value: Json) => fits(validator.event("e")!({ x: value })),
    call: (value: Json) => fits(validator.service("s")!.input({ x: value })),
    hasOutput: model.events[0]!.outputData.length > 0,
    bareCall: () => fits(validator.service("s")!.input({}))
  }
}

/** Calls `check` for each change that breaks nothing for them; says how many there were. */
const eachHarmless = (
  whom: Audience,
  check: (was: ReturnType<typeof admits>, is: ReturnType<typeof admits>, about: string, isNew: boolean) => void
) => {
  let count = 0
  for (const [before, after] of changes) {
    if (compatible(before, after).some((found) => found.whom === whom)) continue
    check(admits(before), admits(after), JSON.stringify([before, after]), before.properties.length === 0)
    count++
  }
  return count
}

const refute = (broken: boolean, about: string, value?: Json) => {
  if (broken) assert.fail(`${JSON.stringify(value)}: ${about}`)
}

describe("compatible", () => {
  it("a model breaks nothing of itself", () => {
    for (const [before] of changes) assert.deepStrictEqual(compatible(before, before), [])
  })

  it("if nothing breaks for devices, what they say is admitted, and they get nothing new", () => {
    const count = eachHarmless("devices", (was, is, about, isNew) => {
      for (const value of values) {
        refute(was.report(value) && !is.report(value), about, value)
        refute(was.event(value) && !is.event(value), about, value)
        refute(!isNew && is.set(value) && !was.set(value), about, value)
        refute(was.bareCall() === is.bareCall() && is.call(value) && !was.call(value), about, value)
      }
    })
    assert.isAbove(count, 300)
  })

  it("if nothing breaks for applications, their calls are admitted, and they read nothing new", () => {
    const count = eachHarmless("applications", (was, is, about, isNew) => {
      for (const value of values) {
        refute(was.set(value) && !is.set(value), about, value)
        refute(was.call(value) && !is.call(value), about, value)
        refute(!isNew && is.report(value) && !was.report(value), about, value)
        refute(is.event(value) && was.hasOutput && !was.event(value), about, value)
      }
      refute(was.bareCall() && !is.bareCall(), about)
    })
    assert.isAbove(count, 300)
  })

  it("if nothing breaks for scenes, what they set and call is admitted", () => {
    const count = eachHarmless("scenes", (was, is, about) => {
      for (const value of values) {
        refute(was.set(value) && !is.set(value), about, value)
        refute(was.call(value) && !is.call(value), about, value)
      }
      refute(was.bareCall() && !is.bareCall(), about)
    })
    assert.isAbove(count, 300)
  })

  it("says for whom, and why", () => {
    const before = defineThingModel({
      properties: [
        { id: "level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 100 } },
        { id: "mode", name: "Mode", accessMode: "r", dataType: { type: "enum", specs: { 0: "day" } } }
      ],
      events: [{ id: "opened", name: "Opened" }],
      services: [{ id: "ring", name: "Ring" }]
    })
    const after = defineThingModel({
      properties: [
        { id: "level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 50 } },
        { id: "mode", name: "Mode", accessMode: "r", dataType: { type: "enum", specs: { 0: "day", 1: "night" } } },
        { id: "added", name: "Added", accessMode: "rw", dataType: { type: "bool" } }
      ],
      services: [{
        id: "ring",
        name: "Ring",
        inputData: [{ id: "times", name: "Times", dataType: { type: "int" } }]
      }]
    })
    assert.deepStrictEqual(
      compatible(before.validator.model, after.validator.model).map(({ id, message, whom }) =>
        `${whom}: ${id}: ${message}`
      ),
      [
        "devices: level: values that fitted do not fit: at most 50, not 100",
        "applications: level: values that could be set are refused: at most 50, not 100",
        "scenes: level: values that could be set are refused: at most 50, not 100",
        "applications: mode: values may come that did not fit: not one of 1",
        "devices: opened: it is gone",
        "applications: opened: it is gone",
        "scenes: opened: it is gone",
        "applications: ring: calls need the input times now",
        "scenes: ring: calls need the input times now",
        "devices: ring: the input times comes now"
      ]
    )
  })
})
