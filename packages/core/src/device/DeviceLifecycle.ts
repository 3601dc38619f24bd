/**
 * Tells features that devices are created, enabled, disabled, bound, unbound,
 * configured, given a new secret or deleted, singly or in batches. Features register hooks; `Devices`
 * and `Batches` know only this service (docs/decisions/0027-lifecycle-hooks.md).
 */
import { Context, Effect, Exit, Layer, Option, type Scope } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { DeviceIdentity } from "./Device.ts"

/**
 * A change of a device other than its deletion. `configured`: a setting that the
 * device reads has changed; `rotated`: the device has a new secret.
 */
export type LifecycleChange = "created" | "enabled" | "disabled" | "bound" | "unbound" | "configured" | "rotated"

/**
 * When a hook runs. Hooks of an earlier stage run first: `access` stops admitting
 * devices, `connection` ends connections, `feature` cleans up, `event` publishes
 * events.
 */
export type LifecycleStage = "access" | "connection" | "feature" | "event"

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
   * Calls the hooks for a stored change. Calls all of them, even if one fails;
   * then fails with the first failure. `at`: Unix milliseconds.
   */
  readonly changed: (
    change: LifecycleChange,
    devices: ReadonlyArray<DeviceIdentity>,
    at: number
  ) => Effect.Effect<void, StoreError>
  /**
   * Deletes devices: calls the `deleting` hooks, runs `remove`, and calls the
   * returned handlers. `remove` returns the devices that it has removed; none: it
   * found nothing to remove, and no handler runs. `at`: Unix milliseconds.
   */
  readonly remove: (
    devices: ReadonlyArray<DeviceIdentity>,
    remove: Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>,
    at: number
  ) => Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>
}>()("@device-cloud/core/device/DeviceLifecycle") {
  static readonly layer: Layer.Layer<DeviceLifecycle> = Layer.sync(DeviceLifecycle, () => make())
}

const stages: ReadonlyArray<LifecycleStage> = ["access", "connection", "feature", "event"]

/** Runs all effects, even if one fails; then fails with the first failure. */
const runAll = (effects: ReadonlyArray<Effect.Effect<void, StoreError>>): Effect.Effect<void, StoreError> =>
  Effect.flatMap(
    Effect.forEach(effects, Effect.exit),
    (exits) => exits.find(Exit.isFailure) ?? Effect.void
  )

const make = (): DeviceLifecycle["Service"] => {
  let hooks: ReadonlyArray<LifecycleHook> = []

  const inOrder = (all: ReadonlyArray<LifecycleHook>) =>
    all.toSorted((a, b) => stages.indexOf(a.stage) - stages.indexOf(b.stage))

  return {
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
    changed: (change, devices, at) =>
      Effect.suspend(() => runAll(hooks.flatMap((hook) => hook[change]?.(devices, at) ?? []))),
    remove: Effect.fnUntraced(function*(devices, remove, at) {
      const handlers = yield* Effect.forEach(
        hooks.flatMap(({ deleting }) => deleting ?? []),
        (deleting) => deleting(devices)
      )
      const removed = yield* remove
      if (Option.isSome(removed)) yield* runAll(handlers.map((handler) => handler(removed.value, at)))
      return removed
    })
  }
}
