/**
 * Values that devices of a thing model might report.
 */
import { Effect, Random } from "effect"

/** A value of JSON. */
export type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Values by the ids of their properties. */
export type Values = Readonly<Record<string, Json>>

/** A property, an input or an output, in the form `metadata`. */
export interface Element {
  readonly id: string
  /** Of a property. */
  readonly accessMode?: string
  readonly dataType: DataType
}

interface DataType {
  readonly type: string
  readonly min?: number
  readonly max?: number
  readonly step?: number
  readonly length?: number
  readonly size?: number
  readonly elementType?: string
  readonly specs?: Readonly<Record<string, string>> | ReadonlyArray<Element>
}

/** A thing model in the form `metadata`. */
export interface Model {
  readonly properties: ReadonlyArray<Element>
  readonly services: ReadonlyArray<{ readonly id: string; readonly outputData?: ReadonlyArray<Element> }>
}

/** The values of a device that has just been switched on. */
export const first = (elements: ReadonlyArray<Element>): Effect.Effect<Values> =>
  Effect.map(
    Effect.forEach(
      elements,
      ({ dataType, id }) => Effect.map(value(dataType, undefined), (made) => [id, made] as const)
    ),
    Object.fromEntries
  )

/** The values a while later: what an application sets stays, what the device measures moves. */
export const next = (elements: ReadonlyArray<Element>, now: Values): Effect.Effect<Values> =>
  Effect.map(
    Effect.forEach(
      elements.filter(({ accessMode }) => accessMode === "r"),
      ({ dataType, id }) => Effect.map(value(dataType, now[id]), (made) => [id, made] as const)
    ),
    Object.fromEntries
  )

/** The bounds of a number that the model leaves open. */
const open = { min: 0, max: 100 }

/** How far a number moves at once, as a part of its range. */
const pace = 0.02

const value = (dataType: DataType, before: Json | undefined): Effect.Effect<Json> => {
  switch (dataType.type) {
    case "int":
    case "float":
    case "double":
      return number(dataType, before)
    case "bool":
      return Effect.map(Random.nextBoolean, Number)
    case "enum":
      return Effect.map(choice(Object.keys(dataType.specs ?? { 0: "" })), Number)
    case "date":
      return Effect.map(Effect.clockWith((clock) => clock.currentTimeMillis), String)
    case "struct":
      return first(dataType.specs as ReadonlyArray<Element>)
    case "array":
      return Effect.forEach(
        Array.from({ length: Math.min(3, dataType.size ?? 3) }),
        () => value({ ...dataType, type: dataType.elementType ?? "int" }, undefined)
      )
    default:
      return Effect.map(choice(["alpha", "beta", "gamma"]), (text) => text.slice(0, dataType.length ?? text.length))
  }
}

const choice = <A>(options: ReadonlyArray<A>): Effect.Effect<A> =>
  Effect.map(Random.next, (random) => options[Math.floor(random * options.length)]!)

/** Starts near the middle of its range and walks from there. */
const number = ({ max, min, step, type }: DataType, before: Json | undefined): Effect.Effect<number> => {
  const low = min ?? Math.min(open.min, max ?? open.min)
  const high = max ?? Math.max(open.max, low + open.max)
  const smallest = step ?? (type === "int" ? 1 : (high - low) / 1000)
  return Effect.map(Random.next, (random) => {
    const from = typeof before === "number" ? before : (low + high) / 2
    const moved = from + (random - 0.5) * 2 * Math.max(smallest, (high - low) * pace)
    const stepped = low + Math.round((moved - low) / smallest) * smallest
    const within = Math.min(high, Math.max(low, Number(stepped.toPrecision(6))))
    return type === "int" ? Math.round(within) : within
  })
}
