/**
 * Tells features that devices are created, enabled, disabled, bound, unbound,
 * configured, given a new secret or deleted, singly or in batches. Features register hooks; `Devices`
 * and `Batches` know only this service (docs/decisions/0027-lifecycle-hooks.md).
 */
import { Context, Effect, Exit, Layer, Option, type Scope } from "effect"
import { given, resulting } from "../kernel/GivenEffect.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { Transactions } from "../kernel/Transactions.ts"
import * as TurnsByKey from "../kernel/TurnsByKey.ts"
import type { ProjectId } from "../project/Project.ts"
import type { DeviceIdentity } from "./Device.ts"

/**
 * A change of a device other than its deletion. `configured`: a setting that the
 * device reads has changed; `rotated`: the device has a new secret.
 */
export type LifecycleChange = "created" | "enabled" | "disabled" | "bound" | "unbound" | "configured" | "rotated"

/**
 * When a hook runs. `record` runs in the transaction of the change and records it;
 * if such a hook fails, the change has not happened. The other hooks run after the
 * transaction, those of an earlier stage first: `access` stops admitting devices,
 * `connection` ends connections, `feature` cleans up.
 */
export type LifecycleStage = "record" | "access" | "connection" | "feature"

/** A change that a write has made. */
export interface StoredChange {
  readonly change: LifecycleChange
  readonly devices: ReadonlyArray<DeviceIdentity>
  /** Unix milliseconds. */
  readonly at: number
}

/** Runs after a change of these devices is stored. `at`: Unix milliseconds. */
export type LifecycleHandler = (
  devices: ReadonlyArray<DeviceIdentity>,
  at: number
) => Effect.Effect<void, StoreError>

/** What a feature does for each change. A change without handler has no effect on the feature. */
export interface LifecycleHook extends Partial<Readonly<Record<LifecycleChange, LifecycleHandler>>> {
  readonly stage: LifecycleStage
  /**
   * Runs before devices are deleted, while the store still has everything about
   * them. Returns a handler that runs after the deletion with the devices that
   * were deleted. `DeviceStore` deletes the rows that belong to a device in its
   * own transaction: a hook deletes only what is stored elsewhere.
   */
  readonly deleting?: (devices: ReadonlyArray<DeviceIdentity>) => Effect.Effect<LifecycleHandler, StoreError>
}

export class DeviceLifecycle extends Context.Service<DeviceLifecycle, {
  /** Calls the hook for all changes from now on, until the scope closes. */
  readonly register: (hook: LifecycleHook) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Runs `write` and calls the hooks for the change that `changeOf` finds in its
   * result; undefined: it has changed nothing. After the transaction, calls all
   * hooks, even if one fails; then fails with the first failure. Transactions of a
   * project take turns, two at once on a node.
   */
  readonly commit: <A, E, R>(
    projectId: ProjectId,
    write: Effect.Effect<A, E, R>,
    changeOf: (result: A) => StoredChange | undefined
  ) => Effect.Effect<A, E | StoreError, R>
  /**
   * Deletes devices: calls the `deleting` hooks, runs `remove`, and calls the
   * returned handlers. `remove` returns the devices that it has removed; none: it
   * found nothing to remove, and no handler runs. `at`: Unix milliseconds. Takes turns
   * as `commit` does.
   */
  readonly remove: (
    projectId: ProjectId,
    devices: ReadonlyArray<DeviceIdentity>,
    remove: Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>,
    at: number
  ) => Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>
}>()("@device-cloud/core/device/DeviceLifecycle") {
  static readonly layer: Layer.Layer<DeviceLifecycle, never, Transactions> = Layer.effect(
    DeviceLifecycle,
    Effect.suspend(() => make)
  )
}

const stages: ReadonlyArray<LifecycleStage> = ["record", "access", "connection", "feature"]

/** Runs all effects, even if one fails; then fails with the first failure. */
const runAll = (effects: ReadonlyArray<Effect.Effect<void, StoreError>>): Effect.Effect<void, StoreError> =>
  Effect.flatMap(
    Effect.forEach(effects, Effect.exit),
    (exits) => exits.find(Exit.isFailure) ?? Effect.void
  )

/** A handler with the stage of its hook. */
interface Staged {
  readonly stage: LifecycleStage
  readonly handler: LifecycleHandler
}

/**
 * Transactions of a project at once. More would wait for the row that counts its devices, each with one of the
 * connections to the storage that all projects share.
 */
const atOnce = 2

const make = Effect.gen(function*() {
  const { within } = yield* Transactions
  const inTurn = yield* TurnsByKey.make<ProjectId>(atOnce)
  let hooks: ReadonlyArray<LifecycleHook> = []

  /** Runs the write with the handlers that record it, then the other handlers. */
  const run = Effect.fnUntraced(function*<A, E, R>(
    projectId: ProjectId,
    write: Effect.Effect<A, E, R>,
    changeOf: (result: A) => { readonly devices: ReadonlyArray<DeviceIdentity>; readonly at: number } | undefined,
    handlersOf: (result: A) => ReadonlyArray<Staged>
  ) {
    const handle = (result: A, isRecord: boolean) => {
      const stored = changeOf(result)
      return stored === undefined ?
        [] :
        handlersOf(result).flatMap(({ handler, stage }) =>
          (stage === "record") === isRecord
            ? [given(`A lifecycle hook of stage ${stage}`, () => handler(stored.devices, stored.at))]
            : []
        )
    }
    const result = yield* inTurn(projectId)(within(
      Effect.tap(write, (result) => Effect.all(handle(result, true), { discard: true }))
    ))
    yield* runAll(handle(result, false))
    return result
  })

  const inOrder = (all: ReadonlyArray<LifecycleHook>) =>
    all.toSorted((a, b) => stages.indexOf(a.stage) - stages.indexOf(b.stage))

  return DeviceLifecycle.of({
    register: (hook) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          hooks = inOrder([...hooks, hook])
        }),
        () =>
          Effect.sync(() => {
            hooks = hooks.filter((each) => each !== hook)
          })
      )),
    commit: (projectId, write, changeOf) =>
      run(projectId, write, changeOf, (result) => {
        const stored = changeOf(result)
        return stored === undefined ?
          [] :
          hooks.flatMap(({ [stored.change]: handler, stage }) => handler === undefined ? [] : { stage, handler })
      }),
    remove: Effect.fnUntraced(function*(projectId, devices, remove, at) {
      const handlers = yield* Effect.forEach(
        hooks.flatMap(({ deleting, stage }) => deleting === undefined ? [] : { deleting, stage }),
        ({ deleting, stage }) => {
          const name = `A lifecycle hook of stage ${stage}`
          return given(name, () => deleting(devices)).pipe(
            resulting(name, "a handler", (value) => typeof value === "function"),
            Effect.map((handler): Staged => ({ stage, handler }))
          )
        }
      )
      return yield* run(
        projectId,
        remove,
        (removed) => Option.isSome(removed) ? { devices: removed.value, at } : undefined,
        () => handlers
      )
    })
  })
})
