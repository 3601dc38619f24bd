/**
 * `scene-match`: matches reports with the stored scenes, in one process, from the
 * reported value to the scenes that it fires. Each report concerns one scene, and
 * one in a hundred fires it.
 */
import {
  type DeviceChange,
  DeviceId,
  DeviceName,
  ProductKey,
  ProjectId,
  type Scene,
  SceneId,
  SceneIndex
} from "@device-cloud/core"
import { Engine } from "json-rules-engine"
import { compare, type Part, type Reference } from "./Comparison.ts"
import type { LoadResult, Times } from "./Measurement.ts"

const productKey = ProductKey.make("benchmark00")
/** Devices that report. */
const active = 1000
const properties = 10
/** Values are 0 to 99. */
const threshold = "98"
/** Reports that are made before the measurement. */
const reports = 100_000

const scene = (number: number, trigger: Scene["triggers"][number]): Scene => ({
  sceneId: SceneId.make(`scene${number}`),
  projectId: ProjectId.make("benchmark"),
  name: `Scene ${number}`,
  desc: "",
  status: "enable",
  triggers: [trigger],
  conditions: [],
  actions: [],
  pausedUntil: null,
  revision: 1,
  createdAt: 0,
  updatedAt: 0
})

const nameOf = (device: number) => DeviceName.make(`device${device}`)
const propertyOf = (number: number) => `property${number % properties}`

const trigger = (deviceName: DeviceName | "*", propertyId: string) =>
  ({ _tag: "Property", productKey, deviceName, propertyId, comparison: { type: ">", value: threshold } }) as const

/** One scene for each property of all devices, and the others for one device each. */
const indexOf = (scenes: number, firstDevice: number): SceneIndex => {
  const index = new SceneIndex(productKey)
  for (let i = 0; i < scenes; i++) {
    index.put(scene(i, i < properties ? trigger("*", propertyOf(i)) : trigger(nameOf(firstDevice + i), propertyOf(i))))
  }
  return index
}

/** Returns numbers that look random and are the same in each run. */
const numbers = () => {
  let state = 1
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor(state / 2 ** 32 * below)
  }
}

interface Report {
  readonly deviceName: DeviceName
  readonly deviceId: DeviceId
  readonly property: string
  readonly value: number
}

const reportsOf = (devices: number): ReadonlyArray<Report> => {
  const below = numbers()
  return Array.from({ length: reports }, () => {
    const deviceName = nameOf(below(devices))
    return {
      deviceName,
      deviceId: DeviceId.make(deviceName),
      property: propertyOf(below(properties)),
      value: below(100)
    }
  })
}

/** Makes the change that the uplink makes of a reported value. */
const eventOf = ({ deviceId, deviceName, property, value }: Report): DeviceChange => ({
  _tag: "PropertiesChanged",
  device: { deviceId, productKey, deviceName },
  at: 1,
  properties: { [property]: { value, time: 1, previous: 0 } }
})

/** Repeats `round` and adds up the events that each round handles. */
const measure = async ({ measureMillis }: Times, round: () => number | Promise<number>): Promise<LoadResult> => {
  await round()
  let count = 0
  let seconds = 0
  const from = performance.now()
  while (seconds * 1000 < measureMillis) {
    count += await round()
    seconds = (performance.now() - from) / 1000
  }
  return { count, seconds, p50: 0, p99: 0 }
}

const matching = (index: SceneIndex, fleet: ReadonlyArray<Report>) => (times: Times) =>
  measure(times, () => {
    let fired = 0
    for (const report of fleet) {
      const { deviceName, property, value } = report
      if (index.propertyWatch(deviceName)?.mayFire(property, value)) fired += index.match(eventOf(report)).length
    }
    if (fired === 0) throw new Error("no scene was fired")
    return fleet.length
  })

/** The reference: a common rule library for Node.js, which looks at every rule. */
const otherEngine = (rules: number, fleet: ReadonlyArray<Report>) => {
  const engine = new Engine([], { allowUndefinedFacts: true })
  for (let i = 0; i < rules; i++) {
    engine.addRule({
      conditions: {
        all: [
          ...i < properties ? [] : [{ fact: "device", operator: "equal", value: `device${active + i}` }],
          { fact: propertyOf(i), operator: "greaterThan", value: Number(threshold) }
        ]
      },
      event: { type: "fired", params: { scene: i } }
    })
  }
  let next = 0
  return (times: Times) =>
    measure(times, async () => {
      const { deviceName, property, value } = fleet[next++ % fleet.length]!
      await engine.run({ device: deviceName, [property]: value })
      return 1
    })
}

const beside = (scenes: number, references: Readonly<Record<string, Reference>> = {}): Part => () => {
  const fleet = reportsOf(active)
  return compare({
    benchmark: "scene-match",
    scenario: `${scenes} scenes`,
    ours: matching(indexOf(scenes, active), fleet),
    references: { "10 scenes": { bar: 0.8, measure: matching(indexOf(properties, active), fleet) }, ...references }
  })
}

/** The data is no longer in the processor's caches. */
const allReport: Part = () => {
  const fleet = reportsOf(100_000)
  return compare({
    benchmark: "scene-match",
    scenario: "100000 scenes, each of a device that reports",
    ours: matching(indexOf(100_000, 0), fleet),
    references: { "10 scenes": { measure: matching(indexOf(properties, 0), fleet) } }
  })
}

export const sceneMatch: ReadonlyArray<Part> = [
  () =>
    beside(1000, {
      "json-rules-engine, 1000 rules": { bar: 100, measure: otherEngine(1000, reportsOf(active)) }
    })(),
  beside(100_000),
  allReport
]
