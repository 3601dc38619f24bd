/**
 * Faults of the storage: errors before and after a commit, delays and hangs, in
 * any store, by chance, by call or by time, and the same in each run with a seed.
 */
import { DeviceCloud, NodeBus, StoreError } from "@device-cloud/core"
import { Clock, Context, Duration, Effect, Layer, Stream } from "effect"
import { probability } from "./Probability.ts"
import { SeededRandom } from "./simulation/SeededRandom.ts"

type Store = Exclude<(typeof DeviceCloud.stores)[number], typeof NodeBus>

type NameOf<Key extends string> = Key extends `${string}/${infer Rest}` ? NameOf<Rest> : Key

type MethodOf<Key> = Key extends Context.Key<infer _, infer Service> ? keyof Service & string : never

/** A store, or one of its methods: `UplinkStore`, `UplinkStore.commit`. */
export type Target = {
  [Key in Store as NameOf<Key["key"]>]: NameOf<Key["key"]> | `${NameOf<Key["key"]>}.${MethodOf<Key>}`
} extends infer Targets ? Targets[keyof Targets] : never

/** One kind of fault. */
export interface Fault {
  /** The stores and methods that it hits. Default: all. */
  readonly on?: Target | ReadonlyArray<Target>
  /**
   * `fail`: the call fails and has had no effect. `loseAnswer`: it has had its effect,
   * and fails. `hang`: it never returns, and has no effect. `{delay}`: it takes
   * longer.
   */
  readonly does: "fail" | "loseAnswer" | "hang" | { readonly delay: Duration.Input }
  /** Which part of the calls it hits, from 0 to 1. Default 1. */
  readonly probability?: number
  /** Whether it may hit the n-th call of a method; the first one is 1. Default: any. */
  readonly calls?: (n: number) => boolean
  /** From when until when it hits, since the layer was built. Default: always, also while the cloud starts. */
  readonly during?: readonly [from: Duration.Input, until: Duration.Input]
  /** `retryable` of the error: whether the core tries again. Default true. */
  readonly retryable?: boolean
}

export interface Options {
  /** Decides by chance: the n-th call of a method has the same fate in each run. */
  readonly seed: number | string
  /** Each may hit a call; the first that ends it counts. */
  readonly faults: ReadonlyArray<Fault>
}

/**
 * Puts faults between a cloud and its stores. Notices between nodes have faults of
 * their own, `LossyNodeBus`. A `TypeError` names what could hit nothing. The
 * platform is merged into this cloud because devices inside the process sign with it.
 *
 * ```ts
 * const Cloud = DeviceCloud.layer.pipe(
 *   Layer.provide(Faults.layer({
 *     seed: 7,
 *     faults: [
 *       { does: "fail", probability: 0.05, during: ["10 seconds", "1 hour"] },
 *       { on: "UplinkStore.commit", does: "loseAnswer", probability: 0.1 },
 *       { on: ["CommandStore", "OtaStore"], does: { delay: "2 seconds" }, calls: (n) => n % 10 === 0 },
 *       { does: "fail", during: ["1 minute", "2 minutes"] }
 *     ]
 *   })),
 *   Layer.provide(StorageMemory.layer),
 *   Layer.provideMerge(PlatformNode.layer)
 * )
 * ```
 */
export const layer = ({ faults, seed }: Options): Layer.Layer<
  DeviceCloud.Stores,
  never,
  DeviceCloud.Stores
> =>
  Layer.effectContext(Effect.gen(function*() {
    const stores = yield* Effect.context<DeviceCloud.Stores>()
    const start = yield* Clock.currentTimeMillis
    const hit = DeviceCloud.stores.filter(({ key }) => key !== NodeBus.key).map((key) => {
      const anyKey = key as Context.Key<DeviceCloud.Stores, object>
      return { key: anyKey, name: key.key.slice(key.key.lastIndexOf("/") + 1), store: Context.get(stores, anyKey) }
    })
    check(faults, new Map(hit.map(({ name, store }) => [name, store])))
    return hit.reduce(
      (context, { key, name, store }) => Context.add(context, key, withFaults(store, name, faults, seed, start)),
      stores
    )
  }))

/** Throws a `TypeError` if a fault could hit nothing. */
const check = (faults: ReadonlyArray<Fault>, stores: ReadonlyMap<string, object>): void =>
  faults.forEach(({ during = [0, Duration.infinity], on = [], probability: chance = 1 }, i) => {
    probability(`faults[${i}].probability`, chance)
    const from = Duration.fromInputUnsafe(during[0])
    const until = Duration.fromInputUnsafe(during[1])
    if (!Duration.isLessThan(from, until)) {
      const given = `${Duration.format(from)} and ${Duration.format(until)}`
      throw new TypeError(`faults[${i}].during: expected an end after the beginning, not ${given}`)
    }
    for (const target of [on].flat()) {
      const [name = "", method] = target.split(".")
      const store = stores.get(name)
      if (store !== undefined && (method === undefined || method in store)) continue
      throw new TypeError(
        `faults[${i}].on: expected a store or one of its methods, for example UplinkStore.commit, not ${target}`
      )
    }
  })

type Call = Effect.Effect<unknown, unknown, unknown>

/** Returns a store whose methods have faults. */
const withFaults = (
  store: object,
  name: string,
  faults: ReadonlyArray<Fault>,
  seed: number | string,
  start: number
): object => {
  const methods = new Map<string | symbol, unknown>()
  return new Proxy(store, {
    get: (target, member) => {
      if (methods.has(member)) return methods.get(member)
      const found: unknown = Reflect.get(target, member)
      const hit = faultsOf(`${name}.${String(member)}`, faults, seed, start)
      const hitResult = (result: unknown): unknown => {
        if (Effect.isEffect(result)) return hit(result as Call)
        // A stream is read when it runs: a fault ends it before its first chunk.
        if (Stream.isStream(result)) return Stream.unwrap(Effect.as(hit(Effect.void), result))
        return result
      }
      const method = typeof found === "function"
        ? (...args: ReadonlyArray<unknown>) => hitResult(found.apply(target, args))
        : hitResult(found)
      methods.set(member, method)
      return method
    }
  })
}

/** Returns what happens to the calls of one method. */
const faultsOf = (
  operation: string,
  faults: ReadonlyArray<Fault>,
  seed: number | string,
  start: number
): (call: Call) => Call => {
  const known = faults.map((fault, i) => ({ ...fault, random: new SeededRandom(seed, i, operation) }))
    .filter(({ on = operation as Target }) =>
      [on].flat().some((each) => each === operation || operation.startsWith(`${each}.`))
    )
  if (known.length === 0) return (call) => call
  let calls = 0
  return (call) =>
    Effect.suspend(() => {
      const n = ++calls
      const possible = known.filter(({ calls: admits, probability = 1, random }) => {
        // Each fault that is not certain draws its number for this call, whether or not it can hit it.
        const isDrawn = probability >= 1 || random.nextDoubleUnsafe() < probability
        return isDrawn && (admits === undefined || admits(n))
      })
      if (possible.length === 0) return call
      return Effect.flatMap(Clock.currentTimeMillis, (now) =>
        possible.reduceRight((outcome, { does, during, retryable = true }) => {
          if (!isDuring(during, now - start)) {
            return outcome
          }
          const error = new StoreError({ operation, retryable, cause: new Error("A fault that was asked for") })
          switch (does) {
            case "fail":
              return Effect.fail(error)
            case "loseAnswer":
              return Effect.andThen(outcome, Effect.fail(error))
            case "hang":
              return Effect.never
            default:
              return Effect.delay(outcome, does.delay)
          }
        }, call))
    })
}

const isDuring = (during: Fault["during"], elapsed: number): boolean =>
  during === undefined ||
  (elapsed >= Duration.toMillis(during[0]) && elapsed < Duration.toMillis(during[1]))
