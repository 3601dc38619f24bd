/**
 * What is different between two thing models. Pure.
 */
import { Equal } from "effect"
import {
  type ElementType,
  type EventElement,
  listOf,
  type PropertyElement,
  type ServiceElement,
  type ThingModel
} from "./ThingModel.ts"

/** An element that one of the models has, or both have in different forms. */
export interface ModelChange {
  readonly type: ElementType
  readonly id: string
  readonly change: "added" | "changed" | "removed"
}

type Element = PropertyElement | EventElement | ServiceElement

const types: ReadonlyArray<ElementType> = ["property", "event", "service"]

/**
 * Returns the elements in which `after` differs from `before`: what was changed and
 * removed in the order of `before`, then what was added. Their order does not count.
 */
export const changesOf = (before: ThingModel, after: ThingModel): ReadonlyArray<ModelChange> =>
  types.flatMap((type) => {
    const [olds, news]: readonly [ReadonlyArray<Element>, ReadonlyArray<Element>] = [
      before[listOf[type]],
      after[listOf[type]]
    ]
    const known = new Set(olds.map(({ id }) => id))
    const byId = new Map(news.map((element) => [element.id, element]))
    return [
      ...olds.flatMap((old): ReadonlyArray<ModelChange> => {
        const now = byId.get(old.id)
        if (now === undefined) return [{ type, id: old.id, change: "removed" }]
        return Equal.equals(old, now) ? [] : [{ type, id: old.id, change: "changed" }]
      }),
      ...news.flatMap(({ id }): ReadonlyArray<ModelChange> => known.has(id) ? [] : [{ type, id, change: "added" }])
    ]
  })
