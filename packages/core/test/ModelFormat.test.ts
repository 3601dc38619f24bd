import { type DataType, type Field, ModelFormat, type ModelType, ProductKey, type ThingModel } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Ajv } from "ajv"
import { Effect, Schema } from "effect"
import { readFileSync } from "node:fs"

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8"))

const productKey = ProductKey.make("a1AirCond001")

const decode = (type: ModelType, document: unknown) => Effect.runSync(ModelFormat.decode(type, document))

const encode = (type: ModelType, model: ThingModel) =>
  // What goes over the wire.
  JSON.parse(JSON.stringify(ModelFormat.encode(type, { model, productKey, version: 3 })))

const issuesOf = (type: ModelType, document: unknown) =>
  Effect.runSync(Effect.flip(ModelFormat.decode(type, document))).issues.map(({ path }) =>
    path.map((step, i) => typeof step === "number" ? `[${step}]` : i === 0 ? step : `.${step}`).join("")
  )

const validSdf = new Ajv({ strict: false, validateFormats: false }).compile(fixture("rfc9880.schema.json") as object)

const airConditioner = () => decode("tsl", fixture("air-conditioner.tsl.json")).model

// Models made of generated choices, so that each is valid.

const ChoiceParts = Schema.Struct({
  kind: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8 })),
  low: Schema.Int.check(Schema.isBetween({ minimum: -100_000, maximum: 100_000 })),
  width: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 })),
  word: Schema.Array(
    Schema.Literals(["a", "Z", "0", "é", "漢", "😀", " ", `"`, "'", "\\", "/", "~", ".", ";", "=", "#"])
  )
    .check(Schema.isMaxLength(12)),
  flags: Schema.Tuple([Schema.Boolean, Schema.Boolean, Schema.Boolean, Schema.Boolean])
})
type Choice = Omit<typeof ChoiceParts.Type, "word"> & { readonly word: string }

const Choices = Schema.Array(ChoiceParts).check(Schema.isMaxLength(8))

const choices = (parts: typeof Choices.Type): ReadonlyArray<Choice> =>
  parts.map((part) => ({ ...part, word: part.word.join("") }))

const nameOf = ({ word }: Choice): string => word.trim() === "" ? "Name" : word

const numberTypes = ["int", "float", "double"] as const

const simpleType = (choice: Choice): DataType => {
  const { flags, kind, low, width, word } = choice
  switch (kind % 7) {
    case 3:
      return { type: "bool", specs: { 0: "off", 1: `on ${word}` } }
    case 4:
      return {
        type: "enum",
        specs: Object.fromEntries([[low, nameOf(choice)], [low + width, "same"], [low - 1, "same"]])
      }
    case 5:
      return { type: "text", length: width }
    case 6:
      return { type: "date" }
    default:
      return {
        type: numberTypes[kind % 7]!,
        ...flags[0] ? { min: low } : {},
        ...flags[1] ? { max: low + width } : {},
        ...flags[2] ? { step: width % 5 } : {},
        ...flags[3] ? { unit: width % 2 === 0 ? "°C" : "Cel", unitName: nameOf(choice) } : {}
      }
  }
}

const fieldsOf = (choices: ReadonlyArray<Choice>): ReadonlyArray<Field> =>
  choices.map((choice, i) => ({ id: `f${i}`, name: nameOf(choice), dataType: simpleType(choice) }))

const dataTypeOf = (choice: Choice, others: ReadonlyArray<Choice>): DataType => {
  const struct: DataType = { type: "struct", specs: fieldsOf([choice, ...others.slice(0, 2)]) }
  if (choice.kind === 7) return struct
  if (choice.kind < 7) return simpleType(choice)
  const item = [
    struct,
    { type: "text", length: choice.width } as const,
    { type: "int", ...choice.flags[0] ? { min: choice.low } : {} } as const
  ][choice.width % 3]!
  return { type: "array", size: choice.width, item }
}

const modelOf = (
  properties: ReadonlyArray<Choice>,
  events: ReadonlyArray<Choice>,
  services: ReadonlyArray<Choice>
): ThingModel => {
  const common = (choice: Choice, id: string) => ({
    id,
    name: nameOf(choice),
    required: choice.flags[0],
    standard: choice.flags[1],
    desc: choice.flags[2] && choice.word.trim() !== "" ? choice.word : ""
  })
  return {
    properties: properties.map((choice, i) => ({
      ...common(choice, `p${i}`),
      accessMode: (["r", "w", "rw"] as const)[choice.width % 3]!,
      dataType: dataTypeOf(choice, properties)
    })),
    events: events.map((choice, i) => ({
      ...common(choice, `e${i}`),
      eventType: (["info", "alert", "error"] as const)[choice.width % 3]!,
      outputData: fieldsOf(events.slice(i))
    })),
    services: services.map((choice, i) => ({
      ...common(choice, `s${i}`),
      callType: choice.flags[3] ? "sync" : "async",
      inputData: fieldsOf(services.slice(i)),
      outputData: fieldsOf(services.slice(0, i))
    }))
  }
}

describe("the forms of a thing model", () => {
  for (const type of ["metadata", "tsl", "sdf"] as const) {
    it.prop(`${type}: what was exported imports as the same model`, [Choices, Choices, Choices], (parts) => {
      const [properties, events, services] = parts.map(choices)
      const model = modelOf(properties!, events!, services!)
      const exported = encode(type, model)
      if (type === "sdf") assert.isTrue(validSdf(exported), JSON.stringify(validSdf.errors))
      assert.deepStrictEqual(decode(type, exported), { model, warnings: [] })
    })
  }

  it("reads a real TSL document, whose numbers are text", () => {
    const { events, properties, services } = airConditioner()
    assert.deepStrictEqual(properties.map(({ id }) => id), [
      "PowerSwitch",
      "TargetTemperature",
      "CurrentTemperature",
      "WindSpeed",
      "RunSeconds",
      "Alias",
      "InstalledAt",
      "HSBColor",
      "Timers"
    ])
    assert.deepStrictEqual(properties[1]?.dataType, {
      type: "float",
      min: 16,
      max: 32,
      step: 0.5,
      unit: "°C",
      unitName: "Celsius"
    })
    // What follows from the properties is not part of the model.
    assert.deepStrictEqual([events.map(({ id }) => id), services.map(({ id }) => id)], [["Error"], [
      "TimeReset",
      "Measure"
    ]])
  })

  it("shows the elements that follow from the properties", () => {
    const tsl = encode("tsl", airConditioner())
    const [post] = tsl.events
    const [set, get] = tsl.services
    assert.deepInclude(post, { identifier: "post", method: "thing.event.property.post", type: "info" })
    assert.strictEqual(post.outputData.length, 9)
    assert.deepInclude(set, { identifier: "set", method: "thing.service.property.set", callType: "async" })
    assert.deepStrictEqual(set.inputData.map(({ identifier }: { identifier: string }) => identifier), [
      "PowerSwitch",
      "TargetTemperature",
      "WindSpeed",
      "Alias",
      "HSBColor",
      "Timers"
    ])
    assert.strictEqual(get.inputData[0], "PowerSwitch")
    const metadata = encode("metadata", airConditioner())
    assert.deepStrictEqual(metadata.services[1].inputData[0], metadata.services[1].outputData[0])
    assert.deepStrictEqual(metadata.properties[8].dataType, { type: "array", size: 10, elementType: "int" })
    assert.deepStrictEqual(metadata.properties[5].dataType, { type: "text", length: 64 })
    assert.deepInclude(metadata.properties[0], { standard: false, funcType: "property", accessMode: "rw" })
    assert.deepInclude(metadata.events[1], { id: "Error", eventType: "error", method: "thing.event.Error.post" })
  })

  it("keeps text in an array without a length of its own", () => {
    const shown = (item: object) => {
      const dataType = { type: "array", specs: { size: "5", item } }
      const { model } = decode("tsl", {
        properties: [{ identifier: "Names", name: "Names", accessMode: "rw", required: false, dataType }]
      })
      return [encode("tsl", model).properties[0].dataType.specs.item, encode("metadata", model).properties[0].dataType]
    }
    const array = { type: "array", size: 5, elementType: "text" }
    assert.deepStrictEqual(shown({ type: "text", specs: {} }), [{ type: "text", specs: {} }, array])
    assert.deepStrictEqual(shown({ type: "text" }), [{ type: "text", specs: {} }, array])
    const short = { type: "text", specs: { length: "8" } }
    assert.deepStrictEqual(shown(short), [short, { ...array, length: 8 }])
  })

  it("writes numbers of a TSL as text", () => {
    const { dataType } = encode("tsl", airConditioner()).properties[4]
    assert.deepStrictEqual(dataType, { type: "int", specs: { min: "0", max: "2147483647", step: "1", unit: "s" } })
  })

  it("reads the standard's own example and renames what cannot be an identifier", () => {
    const document = fixture("switch.sdf.json")
    assert.isTrue(validSdf(document))
    const { model, warnings } = decode("sdf", document)
    assert.deepStrictEqual(model.properties, [{
      id: "value_",
      name: "value",
      required: false,
      standard: false,
      desc: "The state of the switch; false for off and true for on.",
      accessMode: "rw",
      dataType: { type: "bool", specs: { 0: "off", 1: "on" } }
    }])
    assert.deepStrictEqual(model.services.map(({ id }) => id), ["on", "off", "toggle"])
    assert.deepStrictEqual(warnings, [
      "sdfObject.Switch.sdfProperty.value: the name cannot be an identifier; it is value_ in the model"
    ])
  })

  it("resolves references, choices and required elements of an SDF document", () => {
    const { model } = decode("sdf", {
      sdfObject: {
        alarm: {
          sdfRequired: ["#/sdfObject/alarm/sdfProperty/current", "#/sdfObject/alarm/sdfEvent/over"],
          sdfData: { temperature: { type: "number", unit: "Cel", minimum: -40, maximum: 200 } },
          sdfProperty: {
            current: { sdfRef: "#/sdfObject/alarm/sdfData/temperature", writable: false, maximum: 120 },
            mode: { sdfChoice: { eco: { const: 5 }, boost: { const: 7 } } },
            colour: { type: "string", enum: ["red", "green"] },
            level: { type: "integer", exclusiveMinimum: 0, maximum: 9 },
            since: { type: "string", format: "date-time" }
          },
          sdfEvent: { over: { sdfOutputData: { sdfRef: "#/sdfObject/alarm/sdfData/temperature" } } }
        }
      }
    })
    const [current, mode, colour, level, since] = model.properties
    assert.deepInclude(current, {
      required: true,
      accessMode: "r",
      dataType: { type: "double", min: -40, max: 120, unit: "°C" }
    })
    assert.deepStrictEqual(mode?.dataType, { type: "enum", specs: { 5: "eco", 7: "boost" } })
    assert.deepStrictEqual(colour?.dataType, { type: "enum", specs: { 0: "red", 1: "green" } })
    assert.deepStrictEqual(level?.dataType, { type: "int", min: 1, max: 9 })
    assert.deepStrictEqual(since?.dataType, { type: "date" })
    assert.deepStrictEqual(model.events[0]?.outputData.map(({ id }) => id), ["data"])
  })

  const property = (fields: object) => ({
    properties: [{ id: "p", name: "P", accessMode: "rw", dataType: { type: "int" }, ...fields }]
  })
  const typed = (dataType: unknown) => property({ dataType })
  const field = (dataType: object) => ({ id: "f", name: "F", dataType })

  const refused: ReadonlyArray<
    readonly [what: string, type: ModelType, document: unknown, paths: ReadonlyArray<string>]
  > = [
    ["no object", "metadata", [], [""]],
    ["a list that is none", "tsl", { properties: {} }, ["properties"]],
    ["an element that is none", "metadata", { events: [null] }, ["events[0]"]],
    ["no name", "metadata", property({ name: "" }), ["properties[0].name"]],
    ["a long name", "metadata", property({ name: "x".repeat(31) }), ["properties[0].name"]],
    ["a reserved identifier", "metadata", property({ id: "value" }), ["properties[0].id"]],
    ["an identifier with a space", "metadata", property({ id: "a b" }), ["properties[0].id"]],
    ["an identifier of 51 letters", "metadata", property({ id: "x".repeat(51) }), ["properties[0].id"]],
    ["the prototype as identifier", "metadata", property({ id: "__proto__" }), ["properties[0].id"]],
    ["a wrong access mode", "metadata", property({ accessMode: "x" }), ["properties[0].accessMode"]],
    ["a wrong flag", "metadata", property({ required: "yes" }), ["properties[0].required"]],
    ["no type", "metadata", typed(undefined), ["properties[0].dataType"]],
    ["an unknown type", "metadata", typed({ type: "complex" }), ["properties[0].dataType.type"]],
    ["a minimum above the maximum", "metadata", typed({ type: "int", min: 5, max: 4 }), ["properties[0].dataType.max"]],
    [
      "a minimum above the maximum in specs",
      "tsl",
      {
        properties: [{
          identifier: "p",
          name: "P",
          accessMode: "r",
          dataType: { type: "int", specs: { min: "5", max: "4" } }
        }]
      },
      ["properties[0].dataType.specs.max"]
    ],
    ["a bound beyond 32 bits", "metadata", typed({ type: "int", max: 2 ** 31 }), ["properties[0].dataType.max"]],
    ["a bound that is no number", "metadata", typed({ type: "double", min: "low" }), ["properties[0].dataType.min"]],
    ["a fraction as bound of int", "metadata", typed({ type: "int", min: 0.5 }), ["properties[0].dataType.min"]],
    ["one label of bool", "metadata", typed({ type: "bool", specs: { 0: "off" } }), ["properties[0].dataType.specs"]],
    ["an enum of words", "metadata", typed({ type: "enum", specs: { a: "A" } }), ["properties[0].dataType.specs.a"]],
    ["an empty enum", "metadata", typed({ type: "enum", specs: {} }), ["properties[0].dataType.specs"]],
    ["a text of 10241 bytes", "metadata", typed({ type: "text", length: 10_241 }), ["properties[0].dataType.length"]],
    ["an empty struct", "metadata", typed({ type: "struct", specs: [] }), ["properties[0].dataType.specs"]],
    [
      "a struct in a struct",
      "metadata",
      typed({ type: "struct", specs: [field({ type: "struct", specs: [field({ type: "int" })] })] }),
      ["properties[0].dataType.specs[0].dataType.type"]
    ],
    [
      "a member twice",
      "metadata",
      typed({ type: "struct", specs: [field({ type: "int" }), field({ type: "int" })] }),
      ["properties[0].dataType.specs[1].id"]
    ],
    [
      "an array of 513",
      "metadata",
      typed({ type: "array", size: 513, elementType: "int" }),
      ["properties[0].dataType.size"]
    ],
    [
      "an array of enums",
      "metadata",
      typed({ type: "array", size: 5, elementType: "enum" }),
      ["properties[0].dataType.elementType"]
    ],
    [
      "an array of arrays in specs",
      "tsl",
      {
        properties: [{
          identifier: "p",
          name: "P",
          accessMode: "r",
          dataType: { type: "array", specs: { size: "3", item: { type: "array" } } }
        }]
      },
      ["properties[0].dataType.specs.item.type"]
    ],
    [
      "an identifier twice",
      "metadata",
      { ...property({}), services: [{ id: "p", name: "P" }] },
      ["services[0].id"]
    ],
    ["an unknown event type", "tsl", { events: [{ identifier: "e", name: "E", type: "fatal" }] }, ["events[0].type"]],
    ["an unknown call type", "metadata", { services: [{ id: "s", name: "S", callType: "later" }] }, [
      "services[0].callType"
    ]],
    ["two objects", "sdf", { sdfObject: { a: {}, b: {} } }, [""]],
    ["no object in SDF", "sdf", { sdfThing: { a: {} } }, ["sdfThing.a.sdfObject"]],
    [
      "a reference to nothing",
      "sdf",
      { sdfObject: { a: { sdfProperty: { p: { sdfRef: "#/sdfData/missing" } } } } },
      ["sdfObject.a.sdfProperty.p.sdfRef", "sdfObject.a.sdfProperty.p.type", "sdfObject.a.sdfProperty.p"]
    ],
    [
      "a reference to itself",
      "sdf",
      { sdfObject: { a: { sdfProperty: { p: { type: "integer", sdfRef: "#/sdfObject/a/sdfProperty/p" } } } } },
      ["sdfObject.a.sdfProperty.p.sdfRef"]
    ],
    [
      "a minimum above the maximum in SDF",
      "sdf",
      { sdfObject: { a: { sdfProperty: { p: { type: "integer", minimum: 5, maximum: 4 } } } } },
      ["sdfObject.a.sdfProperty.p.maximum"]
    ],
    [
      "a type that SDF has not",
      "sdf",
      { sdfObject: { a: { sdfProperty: { p: { type: "complex" } } } } },
      ["sdfObject.a.sdfProperty.p.type", "sdfObject.a.sdfProperty.p"]
    ]
  ]
  for (const [what, type, document, paths] of refused) {
    it(`refuses ${what} and names the place`, () => assert.deepStrictEqual(issuesOf(type, document), paths))
  }

  const nested = (levels: number, wrap: (inner: object) => object, innermost: object = { type: "integer" }): object => {
    let inner = innermost
    for (let i = 0; i < levels; i++) inner = wrap(inner)
    return inner
  }
  const propertyOf = (definition: object, sdfData: object = {}) => ({
    sdfData,
    sdfObject: { a: { sdfProperty: { p: definition } } }
  })
  const refTo = (name: string) => ({ sdfRef: `#/sdfData/${name}` })
  const traps: ReadonlyArray<readonly [what: string, document: object]> = [
    ["an object that holds itself", propertyOf(refTo("a"), { a: { type: "object", properties: { x: refTo("a") } } })],
    ["an array of itself", propertyOf(refTo("a"), { a: { type: "array", items: refTo("a") } })],
    [
      "a chain of references",
      propertyOf(
        refTo("r0"),
        Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`r${i}`, refTo(`r${i + 1}`)]))
      )
    ],
    ["things in things", { sdfThing: { t: nested(20_000, (inner) => ({ sdfThing: { t: inner } }), {}) } }],
    ["arrays in arrays", propertyOf(nested(20_000, (inner) => ({ type: "array", items: inner })))],
    [
      "a deep object over a deep one",
      propertyOf(
        { ...refTo("a"), ...nested(20_000, (inner) => ({ type: "object", properties: { x: inner } })) },
        { a: nested(20_000, (inner) => ({ type: "object", properties: { x: inner } })) }
      )
    ],
    [
      "references that multiply",
      propertyOf(
        refTo("a0"),
        Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`a${i}`, {
          type: "object",
          properties: Object.fromEntries(Array.from({ length: 50 }, (_, j) => [`x${j}`, refTo(`a${i + 1}`)]))
        }]))
      )
    ],
    [
      "references to a definition that is long",
      {
        sdfData: {
          a: { type: "integer", ...Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`x${i}`, 1])) }
        },
        sdfObject: {
          a: { sdfProperty: Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`p${i}`, refTo("a")])) }
        }
      }
    ]
  ]
  for (const [what, document] of traps) {
    it(`refuses ${what}, without being led astray`, () => assert.isNotEmpty(issuesOf("sdf", document)))
  }

  it("names all that is wrong at once, up to a hundred places", () => {
    const element = { id: "", name: "", accessMode: "", dataType: { type: "" } }
    assert.strictEqual(issuesOf("metadata", { properties: [element] }).length, 4)
    assert.strictEqual(issuesOf("metadata", { properties: Array.from({ length: 100 }, () => element) }).length, 100)
  })

  it("takes 1500 elements and no more", () => {
    const model = (count: number) => ({
      events: Array.from({ length: count }, (_, i) => ({ id: `e${i}`, name: "E" }))
    })
    assert.strictEqual(decode("metadata", model(1500)).model.events.length, 1500)
    assert.deepStrictEqual(issuesOf("metadata", model(1501)), [""])
    // More are not read one by one.
    const broken = { properties: Array.from({ length: 1501 }, () => ({ id: "" })) }
    assert.deepStrictEqual(issuesOf("metadata", broken), [""])
  })

  it("refuses text that is not JSON", () => {
    const { issues: [{ message, path }] } = Effect.runSync(Effect.flip(ModelFormat.decodeText("tsl", "{")))
    assert.deepStrictEqual(path, [])
    assert.match(message, /^expected JSON: /)
  })
})
