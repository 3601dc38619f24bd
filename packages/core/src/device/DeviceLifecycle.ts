/**
 * Tells features what happens to devices as a whole: that they are created,
 * enabled, disabled, bound, unbound and deleted, one by one or many together.
 * Features register hooks; `Devices` and `Batches` know no feature.
 */
import { Context, Effect, Exit, Layer, Option, type Scope } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { DeviceIdentity } from "./Device.ts"

/** What can happen to devices beside their deletion. `configured`: a setting that the device reads has changed. */
export type LifecycleChange = "created" | "enabled" | "disabled" | "bound" | "unbound" | "configured"

/**
 * Hooks of an earlier stage run first: connections end, then features clean up,
 * then it is announced.
 */
export type LifecycleStage = "connection" | "feature" | "event"

/** Runs after the change is stored. `at`: Unix milliseconds. */
export type LifecycleHandler = (
  devices: ReadonlyArray<DeviceIdentity>,
  at: number
) => Effect.Effect<void, StoreError>

/** What a feature does when something happens to devices; what it leaves out does not concern it. */
export interface LifecycleHook extends Partial<Readonly<Record<LifecycleChange, LifecycleHandler>>> {
  readonly stage: LifecycleStage
  /**
   * Runs before devices are deleted, while everything about them can still be
   * read. The handler that it returns runs after they are gone, with those that
   * were there to be deleted. Rows that belong to a device go with it in the
   * transaction of `DeviceStore`: a hook deletes only what is stored elsewhere.
   */
  readonly deleting?: (devices: ReadonlyArray<DeviceIdentity>) => Effect.Effect<LifecycleHandler, StoreError>
}

export class DeviceLifecycle extends Context.Service<DeviceLifecycle, {
  /** Calls the hook from now on, until the scope closes. */
  readonly register: (hook: LifecycleHook) => Effect.Effect<void, never, Scope.Scope>
  /** Calls the hooks for a change that is stored. All run; fails with the first failure. */
  readonly changed: (
    change: LifecycleChange,
    devices: ReadonlyArray<DeviceIdentity>,
    at: number
  ) => Effect.Effect<void, StoreError>
  /**
   * Deletes devices: calls the hooks before, runs `remove`, which returns the
   * devices that it removed (none: there was nothing to remove), and calls the
   * hooks after. `at`: Unix milliseconds.
   */
  readonly remove: (
    devices: ReadonlyArray<DeviceIdentity>,
    remove: Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>,
    at: number
  ) => Effect.Effect<Option.Option<ReadonlyArray<DeviceIdentity>>, StoreError>
}>()("@device-cloud/core/device/DeviceLifecycle") {
  static readonly layer: Layer.Layer<DeviceLifecycle> = Layer.sync(DeviceLifecycle, () => make())
}

const stages: ReadonlyArray<LifecycleStage> = ["connection", "feature", "event"]

/** Runs all; fails with the first failure. */
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
