/**
 * Chance that repeats itself.
 */
export interface SeededRandom {
  /** An integer from 0, below `limit`. */
  readonly below: (limit: number) => number
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  /** So many of them, each at most once, or all. */
  readonly some: <A>(count: number, items: ReadonlyArray<A>) => ReadonlyArray<A>
  /** True so often, from 0 to 1. */
  readonly chance: (probability: number) => boolean
}

/** The generator mulberry32. */
export const make = (seed: number): SeededRandom => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    pick: (items) => items[below(items.length)]!,
    some: (count, items) => {
      const left = [...items]
      return Array.from({ length: Math.min(count, left.length) }, () => left.splice(below(left.length), 1)[0]!)
    },
    chance: (probability) => next() < probability
  }
}
