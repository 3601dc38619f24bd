/**
 * `model-check`: checks values by a compiled thing model, in one process.
 */
import { type Json, Misfit, ModelFormat, ModelValidator } from "@device-cloud/core"
import { Effect } from "effect"
import type { Part } from "./Comparison.ts"

const model = {
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } },
    { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "double", min: -40, max: 120 } },
    { id: "speed", name: "Speed", accessMode: "rw", dataType: { type: "enum", specs: { 0: "auto", 1: "low" } } },
    { id: "runtime", name: "Runtime", accessMode: "r", dataType: { type: "int", min: 0 } },
    { id: "alias", name: "Alias", accessMode: "rw", dataType: { type: "text", length: 64 } },
    {
      id: "colour",
      name: "Colour",
      accessMode: "rw",
      dataType: {
        type: "struct",
        specs: [
          { id: "hue", name: "Hue", dataType: { type: "int", min: 0, max: 360 } },
          { id: "saturation", name: "Saturation", dataType: { type: "int", min: 0, max: 100 } }
        ]
      }
    }
  ]
}

const values: ReadonlyArray<readonly [id: string, value: Json]> = [
  ["power", 1],
  ["temperature", 21.5],
  ["speed", 1],
  ["runtime", 86_400],
  ["alias", "living room"],
  ["colour", { hue: 120, saturation: 50 }],
  ["temperature", "warm"],
  ["unknown", 1]
]

const aim = 1_000_000
const measureMillis = 2000

const check: Part = async () => {
  const decoded = await Effect.runPromise(ModelFormat.decode("metadata", model))
  const validator = ModelValidator.make(decoded.model, 1)
  let refused = 0
  const round = () => {
    for (const [id, value] of values) if (validator.reported(id, value) instanceof Misfit) refused++
  }
  for (let i = 0; i < 200_000; i++) round()
  const from = performance.now()
  let rounds = 0
  while (performance.now() - from < measureMillis) {
    for (let i = 0; i < 1000; i++) round()
    rounds += 1000
  }
  const perSecond = Math.round(rounds * values.length / ((performance.now() - from) / 1000))
  if (refused === 0) throw new Error("every value was admitted")
  return [{
    benchmark: "model-check",
    scenario: `${values.length} values of ${decoded.model.properties.length} properties`,
    reference: "the order to expect",
    ours: { value: perSecond },
    theirs: { value: aim },
    ratio: perSecond / aim,
    bar: 1
  }]
}

export const modelCheck: ReadonlyArray<Part> = [check]
