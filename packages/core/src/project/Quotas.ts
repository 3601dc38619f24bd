/**
 * Keeps projects within their quotas (docs/decisions/0056-quotas.md).
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProjectId, ProjectNotFound } from "./Project.ts"
import {
  DefaultQuotas,
  QuotaChange,
  QuotaExceeded,
  type QuotaLimits,
  type QuotaName,
  TooManyRegistrations
} from "./Quota.ts"
import { QuotaStore } from "./QuotaStore.ts"

/** The limits of a project, its own or the defaults, and what it has. */
export interface QuotaReport {
  readonly limits: QuotaLimits
  readonly used: Readonly<Record<QuotaName, number>>
}

export class Quotas extends Context.Service<Quotas, {
  /** Returns the limits of the project and what it has of them. */
  readonly get: (projectId: ProjectId) => Effect.Effect<QuotaReport, ProjectNotFound | StoreError>
  /** Sets limits of the project; null: the default again. What the project has beyond a new limit stays. */
  readonly set: (
    projectId: ProjectId,
    change: QuotaChange
  ) => Effect.Effect<QuotaReport, InvalidInput | ProjectNotFound | StoreError>
  /** Runs a write that adds `amount` to what the project has, or fails with `QuotaExceeded` and undoes it. */
  readonly within: <A, E, R>(
    projectId: ProjectId,
    quota: Exclude<QuotaName, "objectBytes">,
    amount: number,
    write: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | QuotaExceeded | StoreError, R>
  /** Returns how many bytes of objects the project may have, and how many are left. Fails if it has more than it may. */
  readonly roomForObjects: (
    projectId: ProjectId
  ) => Effect.Effect<{ readonly limit: number; readonly left: number }, QuotaExceeded | StoreError>
  /** Adds bytes of an object, or fails with `QuotaExceeded`. */
  readonly takeBytes: (projectId: ProjectId, bytes: number) => Effect.Effect<void, QuotaExceeded | StoreError>
  /** Gives back the bytes of an object that is gone. */
  readonly giveBytes: (projectId: ProjectId, bytes: number) => Effect.Effect<void, StoreError>
  /** Counts a registration with the secret of a product. */
  readonly register: (
    projectId: ProjectId,
    productKey: string
  ) => Effect.Effect<void, TooManyRegistrations | StoreError>
}>()("@device-cloud/core/project/Quotas") {
  static readonly layer: Layer.Layer<Quotas, never, QuotaStore> = Layer.effect(Quotas, Effect.suspend(() => make))
}

const decodeChange = decodeInput(QuotaChange)

const make = Effect.gen(function*() {
  const store = yield* QuotaStore
  const defaults = yield* DefaultQuotas

  const get = Effect.fn("Quotas.get")(function*(projectId: ProjectId) {
    const { limits, used } = yield* Effect.fromOption(
      yield* store.state(projectId),
      () => new ProjectNotFound({ projectId })
    )
    return { limits: { ...defaults, ...limits }, used }
  })

  const set = Effect.fn("Quotas.set")(function*(projectId: ProjectId, input: QuotaChange) {
    const change = yield* decodeChange(input)
    if (!(yield* store.set(projectId, change))) return yield* new ProjectNotFound({ projectId })
    return yield* get(projectId)
  })

  const roomForObjects = Effect.fnUntraced(function*(projectId: ProjectId) {
    const state = yield* store.state(projectId)
    const used = Option.match(state, { onNone: () => 0, onSome: ({ used }) => used.objectBytes })
    const limit = Option.getOrUndefined(state)?.limits.objectBytes ?? defaults.objectBytes
    if (used > limit) return yield* new QuotaExceeded({ quota: "objectBytes", limit })
    return { limit, left: limit - used }
  })

  const register = Effect.fnUntraced(function*(projectId: ProjectId, productKey: string) {
    const now = yield* Clock.currentTimeMillis
    const minute = Math.floor(now / 60_000)
    const reached = yield* store.register(projectId, productKey, minute, defaults.registrationsPerMinute)
    if (Option.isSome(reached)) {
      const retryAfter = Math.ceil(((minute + 1) * 60_000 - now) / 1000)
      return yield* new TooManyRegistrations({ limit: reached.value, retryAfter })
    }
  })

  return Quotas.of({
    get,
    set,
    within: (projectId, quota, amount, write) =>
      store.within({ projectId, quota, amount, limit: defaults[quota] }, write),
    roomForObjects,
    takeBytes: (projectId, bytes) => store.take(projectId, bytes, defaults.objectBytes),
    giveBytes: (projectId, bytes) =>
      // Nothing is refused that gives something back.
      store.take(projectId, -bytes, Number.MAX_SAFE_INTEGER).pipe(Effect.catchTag("QuotaExceeded", () => Effect.void)),
    register
  })
})
