import {
  type CompareType,
  compileComparison,
  type DeviceChange,
  type DeviceName,
  type DeviceTrigger,
  misfitOfType,
  nextTime,
  ProductKey,
  ProjectId,
  refuseComparison,
  type Scene,
  SceneEvaluator,
  SceneId,
  SceneIndex
} from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"

const compare = (value: Schema.Json, type: CompareType, operand: string) =>
  compileComparison({ type, value: operand })(value)

describe("comparisons", () => {
  it.each<readonly [Schema.Json, CompareType, string, boolean]>([
    [5, "==", "5", true],
    [5, "==", "5.0", true],
    ["5", "==", "5.0", true],
    ["05", "==", "5", true],
    ["a5", "==", "a5.0", false],
    [10, ">", "9", true],
    ["10", ">", "9", true],
    // Not both are numeric: as text.
    ["10", ">", "9a", false],
    ["b", ">", "a", true],
    [5, ">=", "5", true],
    [5, "<", "5", false],
    [5, "<=", "5", true],
    [5, "!=", "6", true],
    [true, "==", "1", true],
    [true, "==", "true", true],
    [1, "==", "true", true],
    [1, "==", " true", true],
    ["1", "==", "true", false],
    [false, "!=", "0", false],
    [null, "==", "null", true],
    [{ a: 1 }, "==", "{\"a\":1}", true],
    [5, "between", "5,7", true],
    [7, "between", "[5,7]", true],
    [7.1, "between", "5,7", false],
    ["m", "between", "a, z", true],
    [2, "in", "1,2,3", true],
    [2, "in", "[1, \"2\"]", true],
    ["b", "in", "a, b", true],
    [4, "in", "1,2,3", false],
    [4, "notIn", "1,2,3", true],
    [2, "notIn", "[2]", false],
    ["kitchen", "like", "itch", true],
    ["kitchen", "like", "kit%", true],
    ["kitchen", "like", "%itch", false],
    ["kitchen", "like", "k_tch%", true],
    ["a.c", "like", "a.c", true],
    ["abc", "like", "a.c", false],
    ["ab%", "like", "a%b%", true],
    ["", "like", "%", true],
    [123, "like", "1%3", true],
    ["aab", "like", "%a_", true],
    ["a\nb", "like", "a_b", true],
    ["", "like", "_", false],
    ["a😀b", "like", "a_b", true],
    ["a😀b", "like", "a__b", false],
    ["😀", "like", "%😀", true],
    ["abc", "like", "%%c", true],
    ["abcd", "like", "%bc", false],
    [`${"x".repeat(40)}${"y".repeat(40)}`, "like", `${"x".repeat(40)}${"_".repeat(39)}y`, true],
    [`${"x".repeat(40)}${"y".repeat(40)}`, "like", `${"x".repeat(40)}%${"_".repeat(41)}`, false]
  ])("%j %s %s is %s", (value, type, operand, expected) => {
    assert.strictEqual(compare(value, type, operand), expected)
  })

  it.prop(
    "like reads a pattern as a regular expression does",
    [
      Schema.Array(Schema.Literals(["a", "b"])).check(Schema.isMaxLength(8)),
      Schema.Array(Schema.Literals(["a", "b", "_", "%"])).check(Schema.isMaxLength(6))
    ],
    ([text, pattern]) => {
      // Long enough for more than one word of bits.
      const like = `${"_".repeat(30)}${pattern.join("")}`
      const expected = new RegExp(`^${like.replaceAll("%", ".*").replaceAll("_", ".")}$`)
      const value = `${"c".repeat(30)}${text.join("")}`
      assert.strictEqual(compare(value, "like", like), expected.test(value))
    }
  )

  it("what devices say cannot make a comparison slow", () => {
    // Each of these would take minutes if the time grew with the square of the length.
    const digits = `${"1".repeat(250_000)}x`
    assert.isFalse(compare(digits, ">", "5"))
    assert.isFalse(compare(digits, "in", Array.from({ length: 200 }, (_, i) => i).join(",")))
    assert.isTrue(compare(digits, "like", `%${"1_".repeat(500)}x`))
    assert.isFalse(compare(digits, "like", `%${"1_".repeat(500)}y`))
  })

  it.each<readonly [CompareType, string]>([
    ["==", ""],
    ["between", "1"],
    ["between", "1,"],
    ["between", ",1"],
    ["between", "1,2,3"],
    ["between", "[1,{}]"],
    ["between", "[1,2"],
    ["in", ""],
    ["in", "[]"],
    ["notIn", " "],
    ["like", ""]
  ])("refuses %s with %j", (type, operand) => {
    assert.isDefined(refuseComparison({ type, value: operand }))
    assert.isFalse(compare(1, type, operand))
  })

  const int = { type: "int" } as const
  const bool = { type: "bool", specs: { 0: "off", 1: "on" } } as const
  const mode = { type: "enum", specs: { 0: "auto", 2: "high" } } as const
  const text = { type: "text", length: 10 } as const
  const list = { type: "array", size: 2, item: int } as const

  it.each(
    [
      [int, ">", "5", true],
      [int, ">", "warm", false],
      [int, "between", "1,x", false],
      [int, "like", "1%", false],
      [bool, "==", "true", true],
      [bool, "in", "0,1", true],
      [bool, "==", "2", false],
      [bool, ">", "0", false],
      [mode, "==", "2", true],
      [mode, "==", "1", false],
      [mode, ">=", "1", true],
      [text, "like", "a%", true],
      [text, ">", "a", true],
      [list, "==", "[]", false]
    ] as const
  )("%j with %s %s fits: %s", (dataType, type, value, fits) => {
    assert.strictEqual(misfitOfType({ type, value }, dataType) === undefined, fits)
  })
})

describe("cron expressions", () => {
  const after = (expression: string, zone = "UTC") => {
    const next = nextTime(expression, zone, Date.UTC(2026, 0, 1))
    return next === null ? null : new Date(next).toISOString()
  }

  it.each<readonly [string, string | undefined, string | null]>([
    ["30 15 8 * * *", undefined, "2026-01-01T08:15:30.000Z"],
    ["15 8 * * *", undefined, "2026-01-01T08:15:00.000Z"],
    ["*/15 * * * * *", undefined, "2026-01-01T00:00:15.000Z"],
    ["0 0 8 * * 1", undefined, "2026-01-05T08:00:00.000Z"],
    ["0 0 8 * * *", "Europe/Berlin", "2026-01-01T07:00:00.000Z"],
    ["0 0 0 31 2 *", undefined, null],
    ["61 * * * * *", undefined, null],
    ["every day", undefined, null],
    ["", undefined, null]
  ])("%j in %s comes next at %s", (expression, zone, expected) => {
    assert.strictEqual(after(expression, zone), expected)
  })
})

// A small world, so that much of it meets.
const deviceNames = ["a", "b"]
const propertyIds = ["x", "y"]
const eventIds = ["e", "f"]
const compareTypes: ReadonlyArray<CompareType | undefined> = [undefined, "==", ">", "between", "in", "like"]

const Choices = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1000 }))).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(60)
)

/** Picks one after the other, by the numbers. */
const picker = (choices: ReadonlyArray<number>) => {
  let next = 0
  return <A>(items: ReadonlyArray<A>): A => items[choices[next++ % choices.length]! % items.length]!
}

type Choose = ReturnType<typeof picker>

const productKeys = ["p", "q"].map((productKey) => ProductKey.make(productKey))

const makeTrigger = (pick: Choose): DeviceTrigger => {
  const devices = { productKey: pick(productKeys), deviceName: pick([...deviceNames, "*"]) as DeviceName }
  const type = pick(compareTypes)
  const operand = type === "between" ? "1,3" : type === "in" ? "2,4" : pick(["0", "2", "3"])
  const comparison = type === undefined ? null : { type, value: operand }
  switch (pick(["Property", "Event", "Status"] as const)) {
    case "Property":
      return { _tag: "Property", ...devices, propertyId: pick([...propertyIds, "*"]), comparison }
    case "Event": {
      const propertyId = comparison === null ? pick([null, "x"]) : pick(propertyIds)
      return { _tag: "Event", ...devices, eventId: pick([...eventIds, "*"]), propertyId, comparison }
    }
    case "Status":
      return { _tag: "Status", ...devices, status: pick(["online", "offline", "*"] as const) }
  }
}

const makeScene = (pick: Choose, number: number): Scene => ({
  sceneId: SceneId.make(`scene${number}`),
  projectId: ProjectId.make("project"),
  name: "Scene",
  desc: "",
  status: "enable",
  triggers: Array.from({ length: pick([0, 1, 2, 3]) }, () => makeTrigger(pick)),
  conditions: [],
  actions: [],
  pausedUntil: null,
  revision: 1,
  createdAt: 0,
  updatedAt: 0
})

const makeEvent = (pick: Choose): DeviceChange => {
  const of = {
    device: { deviceId: "d", productKey: pick(productKeys), deviceName: pick(deviceNames) },
    at: 0
  } as unknown as Pick<DeviceChange, "device" | "at">
  const value = () => pick<Schema.Json>([0, 1, 2, 3, "2", true, null, { x: 1 }])
  switch (pick(["PropertiesChanged", "EventReported", "StatusChanged"] as const)) {
    case "PropertiesChanged":
      return {
        _tag: "PropertiesChanged",
        ...of,
        properties: Object.fromEntries(
          pick([["x"], ["y"], ["x", "y"]]).map((id) => [id, { value: value(), time: 0 }])
        )
      }
    case "EventReported":
      return {
        _tag: "EventReported",
        ...of,
        eventId: pick(eventIds),
        time: 0,
        value: pick<Schema.Json>([{ x: value() }, { x: value(), y: value() }, {}, [value()], null])
      }
    case "StatusChanged":
      return { _tag: "StatusChanged", ...of, status: pick(["online", "offline"] as const) }
  }
}

/** Whether the trigger fires, said as plainly as it can be. */
const naive = (trigger: DeviceTrigger, event: DeviceChange): boolean => {
  if (trigger.productKey !== event.device.productKey) return false
  if (trigger.deviceName !== "*" && trigger.deviceName !== event.device.deviceName) return false
  const holds = (comparison: { readonly type: CompareType; readonly value: string } | null, value: Schema.Json) => {
    if (comparison === null) return true
    const number = (of: Schema.Json) =>
      typeof of === "boolean" ? Number(of) : of === null || typeof of === "object" ? NaN : Number(of)
    const text = typeof value === "string" ? value : JSON.stringify(value)
    const order = (operand: string) =>
      Number.isNaN(number(value)) ? (text < operand ? -1 : text > operand ? 1 : 0) : number(value) - Number(operand)
    switch (comparison.type) {
      case "==":
        return order(comparison.value) === 0
      case ">":
        return order(comparison.value) > 0
      case "between":
        return order("1") >= 0 && order("3") <= 0
      case "in":
        return order("2") === 0 || order("4") === 0
      default:
        return text.includes(comparison.value)
    }
  }
  if (trigger._tag === "Property" && event._tag === "PropertiesChanged") {
    return Object.entries(event.properties).some(([id, { value }]) =>
      (trigger.propertyId === "*" || trigger.propertyId === id) && holds(trigger.comparison, value)
    )
  }
  if (trigger._tag === "Event" && event._tag === "EventReported") {
    if (trigger.eventId !== "*" && trigger.eventId !== event.eventId) return false
    if (trigger.propertyId === null || trigger.comparison === null) return true
    const outputs = event.value
    if (outputs === null || typeof outputs !== "object" || Array.isArray(outputs)) return false
    const output = (outputs as Record<string, Schema.Json>)[trigger.propertyId]
    return output !== undefined && holds(trigger.comparison, output)
  }
  return trigger._tag === "Status" && event._tag === "StatusChanged" &&
    (trigger.status === "*" || trigger.status === event.status)
}

const nothingKnown: SceneEvaluator.SceneFacts = {
  now: 0,
  timeZone: "UTC",
  device: () => "deleted",
  custom: () => ({ verdict: "fails", source: "none", time: null, reason: "" })
}

/** Whether one of the changed values may fire a scene. */
const mayFire = (index: SceneIndex, { device, properties }: DeviceChange & { _tag: "PropertiesChanged" }) => {
  const watch = index.propertyWatch(device.deviceName)
  return Object.entries(properties).some(([id, { value }]) => watch?.mayFire(id, value) === true)
}

describe("the index and the evaluator", () => {
  it.prop(
    "find the same scenes as looking at each of them, whatever was put in and taken out",
    [Choices, Choices],
    ([choices, events]) => {
      const pick = picker(choices)
      const scenes = Array.from({ length: 12 }, (_, number) => makeScene(pick, number))
      const indexes = new Map(productKeys.map((productKey) => [productKey, new SceneIndex(productKey)]))
      const stored = new Map<string, Scene>()
      for (let turn = 0; turn < 20; turn++) {
        const scene = pick(scenes)
        const changed = { ...scene, triggers: makeScene(pick, 0).triggers }
        const isRemoved = pick([true, false, false])
        if (isRemoved) stored.delete(scene.sceneId)
        else stored.set(scene.sceneId, changed)
        for (const index of indexes.values()) {
          if (isRemoved) index.remove(scene.sceneId)
          else index.put(changed)
        }
        // What the index remembers of devices does not outlive a change.
        const asked = makeEvent(pick)
        if (asked._tag === "PropertiesChanged") mayFire(indexes.get(asked.device.productKey)!, asked)
      }
      const pickEvent = picker(events)
      for (let i = 0; i < 20; i++) {
        const event = makeEvent(pickEvent)
        const expected = [...stored.values()]
          .filter(({ triggers }) => triggers.some((trigger) => trigger._tag !== "Cron" && naive(trigger, event)))
          .map(({ sceneId }) => sceneId)
          .toSorted()
        const found = indexes.get(event.device.productKey)!.match(event).map(({ sceneId }) => sceneId)
        assert.deepStrictEqual(found.toSorted(), expected)
        if (event._tag === "PropertiesChanged") {
          assert.strictEqual(mayFire(indexes.get(event.device.productKey)!, event), expected.length > 0)
        }
        for (const scene of stored.values()) {
          const { fires } = SceneEvaluator.evaluate(scene, event, nothingKnown)
          assert.strictEqual(fires, expected.includes(scene.sceneId), JSON.stringify([scene.triggers, event]))
        }
        if (expected.length > 0) {
          assert.isTrue(indexes.get(event.device.productKey)!.watches(event._tag, event.device.deviceName))
        }
      }
    }
  )

  it("a paused scene is not fired before its time", () => {
    const index = new SceneIndex("p")
    const trigger = { _tag: "Status", productKey: ProductKey.make("p"), deviceName: "*", status: "*" } as const
    index.put({ ...makeScene(picker([0]), 0), triggers: [trigger], pausedUntil: 100 })
    const event = (at: number) =>
      ({
        _tag: "StatusChanged",
        device: { productKey: "p", deviceName: "a" },
        at,
        status: "online"
      }) as DeviceChange
    assert.deepStrictEqual([index.match(event(99)).length, index.match(event(100)).length], [0, 1])
  })
})
