/**
 * What a change of a thing model breaks, and for whom. Pure.
 */
import { type DataType, type Field, int32, maxFloat, type NumberType } from "./DataType.ts"
import type { EventElement, PropertyElement, ServiceElement, ThingModel } from "./ThingModel.ts"

/**
 * Whoever goes by the model as it was. `devices`: they report values that are
 * refused now, or may be sent values that they do not know. `applications`: they may
 * read values that they do not know, or their calls are refused. `scenes`: they name
 * what is no longer there, or set and call what is refused.
 */
export type Audience = "devices" | "applications" | "scenes"

/** Something that a change breaks. */
export interface ModelBreak {
  readonly whom: Audience
  readonly element: "property" | "event" | "service"
  readonly id: string
  /** A sentence. */
  readonly message: string
}

/**
 * What breaks when `before` becomes `after`; empty: nothing does. To add elements,
 * and to change names, descriptions, units and labels, breaks nothing.
 *
 * ```ts
 * const breaks = compatible(stored.model, lamp.validator.model)
 * for (const { id, message, whom } of breaks) console.warn(`${whom}: ${id}: ${message}`)
 * ```
 */
export const compatible = (before: ThingModel, after: ThingModel): ReadonlyArray<ModelBreak> => [
  ...pairs(before.properties, after.properties).flatMap(([old, now]) =>
    named("property", old.id, now === undefined ? gone : ofProperty(old, now))
  ),
  ...pairs(before.events, after.events).flatMap(([old, now]) =>
    named("event", old.id, now === undefined ? gone : ofEvent(old, now))
  ),
  ...pairs(before.services, after.services).flatMap(([old, now]) =>
    named("service", old.id, now === undefined ? gone.slice(1) : ofService(old, now))
  )
]

type Break = Pick<ModelBreak, "whom" | "message">

const all = ["devices", "applications", "scenes"] as const

const toEach = (audiences: ReadonlyArray<Audience>, message: string): ReadonlyArray<Break> =>
  audiences.map((whom) => ({ whom, message }))

/** Nobody is told twice about an element for the same reason. */
const named = (element: ModelBreak["element"], id: string, breaks: ReadonlyArray<Break>): ReadonlyArray<ModelBreak> => [
  ...new Map(
    breaks.map(({ message, whom }) => [`${whom} ${message}`, { whom, element, id, message }])
  ).values()
]

const gone = toEach(all, "it is gone")

const pairs = <A extends { readonly id: string }>(
  before: ReadonlyArray<A>,
  after: ReadonlyArray<A>
): ReadonlyArray<readonly [A, A | undefined]> => {
  const byId = new Map(after.map((element) => [element.id, element]))
  return before.map((old) => [old, byId.get(old.id)])
}

const isReadable = ({ accessMode }: PropertyElement): boolean => accessMode !== "w"
const isWritable = ({ accessMode }: PropertyElement): boolean => accessMode !== "r"

const ofProperty = (old: PropertyElement, now: PropertyElement): ReadonlyArray<Break> => {
  const narrower = why(now.dataType, old.dataType)
  const wider = why(old.dataType, now.dataType)
  return [
    // A device may report each property of its model, whatever applications may do with it.
    ...narrower.flatMap((reason) => toEach(["devices"], `values that fitted do not fit: ${reason}`)),
    ...isReadable(old) && !isReadable(now) ? toEach(["applications", "scenes"], "it cannot be read any more") : [],
    ...wider.flatMap((reason) => toEach(["applications"], `values may come that did not fit: ${reason}`)),
    ...isWritable(old) && !isWritable(now) ? toEach(["applications", "scenes"], "it cannot be set any more") : [],
    ...isWritable(old)
      ? narrower.flatMap((reason) =>
        toEach(["applications", "scenes"], `values that could be set are refused: ${reason}`)
      )
      : [],
    ...isWritable(now) && !isWritable(old) ? toEach(["devices"], "it can be set now") : [],
    ...isWritable(now)
      ? wider.flatMap((reason) => toEach(["devices"], `values may be set that did not fit: ${reason}`))
      : [],
    ...isOtherKind(old.dataType, now.dataType) ? toEach(["scenes"], otherKind(old.dataType, now.dataType)) : []
  ]
}

const ofEvent = (old: EventElement, now: EventElement): ReadonlyArray<Break> =>
  pairs(old.outputData, now.outputData).flatMap(([field, same]) =>
    same === undefined
      ? toEach(all, `the output ${field.id} is gone`)
      : [
        ...why(same.dataType, field.dataType).flatMap((reason) =>
          toEach(["devices"], `values of the output ${field.id} that fitted do not fit: ${reason}`)
        ),
        ...why(field.dataType, same.dataType).flatMap((reason) =>
          toEach(["applications"], `values of the output ${field.id} may come that did not fit: ${reason}`)
        ),
        ...isOtherKind(field.dataType, same.dataType)
          ? toEach(["scenes"], `the output ${field.id}: ${otherKind(field.dataType, same.dataType)}`)
          : []
      ]
  )

const ofService = (old: ServiceElement, now: ServiceElement): ReadonlyArray<Break> => {
  const known = new Set(old.inputData.map(({ id }) => id))
  return [
    ...old.callType === "sync" && now.callType === "async"
      ? toEach(["applications"], "calls do not wait for the reply by themselves any more")
      : [],
    ...pairs(old.inputData, now.inputData).flatMap(([field, same]) => ofInput(field, same)),
    ...now.inputData.filter(({ id }) => !known.has(id)).flatMap(({ id }) => [
      ...toEach(["applications", "scenes"], `calls need the input ${id} now`),
      ...toEach(["devices"], `the input ${id} comes now`)
    ]),
    ...pairs(old.outputData, now.outputData).flatMap(([field, same]) =>
      same === undefined
        ? toEach(["applications"], `the output ${field.id} is gone`)
        : why(field.dataType, same.dataType).flatMap((reason) =>
          toEach(["applications"], `values of the output ${field.id} may come that did not fit: ${reason}`)
        )
    )
  ]
}

const ofInput = (field: Field, same: Field | undefined): ReadonlyArray<Break> =>
  same === undefined
    ? [
      ...toEach(["applications", "scenes"], `calls may not have the input ${field.id} any more`),
      ...toEach(["devices"], `the input ${field.id} does not come any more`)
    ]
    : [
      ...why(same.dataType, field.dataType).flatMap((reason) =>
        toEach(["applications", "scenes"], `values of the input ${field.id} are refused that fitted: ${reason}`)
      ),
      ...why(field.dataType, same.dataType).flatMap((reason) =>
        toEach(["devices"], `values of the input ${field.id} may come that did not fit: ${reason}`)
      )
    ]

const isOtherKind = (old: DataType, now: DataType): boolean => old.type !== now.type

const otherKind = (old: DataType, now: DataType): string => `the type was ${old.type} and is ${now.type}`

/** Why a value of `narrow` may not fit `wide`; empty: each fits. */
const why = (wide: DataType, narrow: DataType): ReadonlyArray<string> => {
  if (isNumber(wide) && isNumber(narrow)) return whyNumber(wide, narrow)
  if (wide.type !== narrow.type) return [`${narrow.type} is not ${wide.type}`]
  switch (wide.type) {
    case "enum": {
      const { specs } = narrow as typeof wide
      const missing = Object.keys(specs).filter((key) => !Object.hasOwn(wide.specs, key))
      return missing.length === 0 ? [] : [`not one of ${missing.join(", ")}`]
    }
    case "text": {
      const { length } = narrow as typeof wide
      return length <= wide.length ? [] : [`at most ${wide.length} bytes, not ${length}`]
    }
    case "struct":
      return pairs((narrow as typeof wide).specs, wide.specs).flatMap(([member, same]) =>
        same === undefined
          ? [`there is no member ${member.id}`]
          : why(same.dataType, member.dataType).map((reason) => `${member.id}: ${reason}`)
      )
    case "array": {
      const { item, size } = narrow as typeof wide
      return [...size <= wide.size ? [] : [`at most ${wide.size} items, not ${size}`], ...why(wide.item, item)]
    }
    default:
      return []
  }
}

const isNumber = (type: DataType): type is NumberType =>
  type.type === "int" || type.type === "float" || type.type === "double"

const rangeOf = ({ max, min, type }: NumberType) => {
  const limit = type === "float" ? maxFloat : Number.MAX_VALUE
  return type === "int"
    ? { min: min ?? int32.min, max: max ?? int32.max }
    : { min: min ?? -limit, max: max ?? limit }
}

const whyNumber = (wide: NumberType, narrow: NumberType): ReadonlyArray<string> => {
  const [outer, inner] = [rangeOf(wide), rangeOf(narrow)]
  return [
    ...wide.type === "int" && narrow.type !== "int" ? ["a whole number"] : [],
    ...inner.min < outer.min ? [`at least ${outer.min}, not ${inner.min}`] : [],
    ...inner.max > outer.max ? [`at most ${outer.max}, not ${inner.max}`] : []
  ]
}
