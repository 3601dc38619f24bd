import { type DataType, type Json, Misfit, ModelValidator, type ThingModel } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"

const base = { name: "P", required: false, standard: false, desc: "" }

const check = (dataType: DataType) => {
  const model: ThingModel = {
    properties: [{ ...base, id: "p", accessMode: "rw", dataType }],
    events: [],
    services: []
  }
  const validator = ModelValidator.make(model, 1)
  return (value: Json) => {
    const checked = validator.reported("p", value)
    return checked instanceof Misfit ? `refused ${checked.code}` : checked
  }
}

const someOfEachType: ReadonlyArray<Json> = [
  null,
  true,
  -1,
  0.5,
  "",
  "a",
  [],
  {},
  [[1]],
  Number.NaN,
  Number.POSITIVE_INFINITY
]

const types: ReadonlyArray<{
  readonly dataType: DataType
  /** Value to what is stored. */
  readonly admitted: ReadonlyArray<readonly [Json, Json]>
  readonly refused: ReadonlyArray<Json>
  readonly code: number
}> = [
  {
    dataType: { type: "int", min: -5, max: 10 },
    admitted: [[-5, -5], [10, 10], [0, 0]],
    refused: [-6, 11, "1", ...someOfEachType.filter((value) => value !== -1)],
    code: 6306
  },
  { dataType: { type: "int" }, admitted: [[-(2 ** 31), -(2 ** 31)]], refused: [2 ** 31, 0.5, "0"], code: 6306 },
  {
    dataType: { type: "float" },
    // The greatest of 4 bytes, with 8 digits and with 9.
    admitted: [[0.1, 0.1], [-3.4e38, -3.4e38], [3.4028235e38, 3.4028235e38], [-3.40282347e38, -3.40282347e38]],
    refused: [3.5e38, 3.4028236e38, "0.1", ...someOfEachType.filter((value) => value !== -1 && value !== 0.5)],
    code: 6307
  },
  {
    dataType: { type: "double", min: 0 },
    admitted: [[1.5e300, 1.5e300]],
    refused: [-0.1, ...someOfEachType.filter((value) => value !== 0.5)],
    code: 6322
  },
  {
    dataType: { type: "bool", specs: { 0: "off", 1: "on" } },
    admitted: [[0, 0], [1, 1], [true, 1], [false, 0]],
    refused: [2, "1", "true", ...someOfEachType.filter((value) => value !== true)],
    code: 6308
  },
  {
    dataType: { type: "enum", specs: { 0: "a", 7: "b" } },
    admitted: [[0, 0], [7, 7]],
    refused: [1, "0", ...someOfEachType],
    code: 6309
  },
  {
    dataType: { type: "text", length: 4 },
    admitted: [["", ""], ["abcd", "abcd"], ["é漢".slice(0, 1), "é"], ["😀", "😀"]],
    refused: ["abcde", "漢漢", 1, ...someOfEachType.filter((value) => typeof value !== "string")],
    code: 6310
  },
  {
    dataType: { type: "date" },
    admitted: [["1536228947682", "1536228947682"], [1536228947682, "1536228947682"]],
    refused: ["2020-01-01", "-1", "9".repeat(17), ...someOfEachType],
    code: 6311
  },
  {
    dataType: {
      type: "struct",
      specs: [{ id: "on", name: "On", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } }, {
        id: "n",
        name: "N",
        dataType: { type: "int" }
      }]
    },
    admitted: [[{ on: true, n: 5 }, { on: 1, n: 5 }], [{ n: 1 }, { n: 1 }], [{}, {}]],
    refused: someOfEachType.filter((value) => JSON.stringify(value) !== "{}"),
    code: 6312
  },
  {
    dataType: { type: "array", size: 2, item: { type: "int" } },
    admitted: [[[], []], [[1, 2], [1, 2]]],
    refused: someOfEachType.filter((value) => !Array.isArray(value)),
    code: 6328
  }
]

describe("a compiled thing model", () => {
  for (const { admitted, code, dataType, refused } of types) {
    it(`admits ${JSON.stringify(dataType)} and nothing else`, () => {
      const result = check(dataType)
      for (const [value, stored] of admitted) assert.deepStrictEqual(result(value), stored, JSON.stringify(value))
      for (const value of refused) assert.strictEqual(result(value), `refused ${code}`, JSON.stringify(value))
    })
  }

  it("says where inside of a value it does not fit", () => {
    const array = check({ type: "array", size: 2, item: { type: "int" } })
    assert.strictEqual(array([1, 2, 3]), "refused 6324")
    assert.strictEqual(array([1, "2"]), "refused 6325")
    const struct = check({ type: "struct", specs: [{ id: "n", name: "N", dataType: { type: "int" } }] })
    assert.strictEqual(struct({ n: "1" }), "refused 6306")
    assert.strictEqual(struct({ m: 1 }), "refused 6304")
    assert.strictEqual(struct(JSON.parse(`{"__proto__":{"n":1}}`)), "refused 6304")
    assert.strictEqual(struct(JSON.parse(`{"constructor":1}`)), "refused 6304")
  })

  it("takes all outputs of an event as optional, all inputs of a service as required", () => {
    const fields = [{ id: "a", name: "A", dataType: { type: "int" } as const }]
    const validator = ModelValidator.make({
      properties: [{ ...base, id: "r", accessMode: "r", dataType: { type: "int" } }],
      events: [{ ...base, id: "e", eventType: "info", outputData: fields }],
      services: [{ ...base, id: "s", callType: "async", inputData: fields, outputData: [] }]
    }, 1)
    assert.deepStrictEqual(validator.event("e")?.({}), {})
    assert.instanceOf(validator.event("e")?.({ a: "x" }), Misfit)
    assert.isUndefined(validator.event("missing"))
    assert.deepStrictEqual(validator.service("s")?.input({ a: 1 }), { a: 1 })
    assert.deepInclude(validator.service("s")?.input({}), { code: 6302 })
    assert.instanceOf(validator.desired("r", 1), Misfit)
    assert.strictEqual(validator.reported("r", 1), 1)
    assert.deepInclude(validator.reported("toString", 1), { code: 6320 })
  })
})
