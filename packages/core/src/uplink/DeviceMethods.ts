/**
 * The registry of device methods: what devices may say to the cloud. A feature
 * declares its methods next to its service and registers them here; an
 * application adds its own with `DeviceMethods.layer`. `Uplink` sorts messages
 * by this registry, and the MQTT and HTTP adapters take forms and actions from
 * it (docs/decisions/0026-device-methods.md).
 */
import { Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import type { DeviceMethod, Handle, Lane, MessageForm } from "./DeviceMethod.ts"

export class DeviceMethods extends Context.Service<DeviceMethods, {
  /**
   * Adds methods for good: messages that wait while the cloud shuts down still
   * find theirs. Fails with `DuplicateDeviceMethod` if a name is taken; then none
   * is added.
   */
  readonly register: <R>(
    methods: ReadonlyArray<DeviceMethod<R>>
  ) => Effect.Effect<void, DuplicateDeviceMethod, R>
  /** Returns the method for a name such as `thing.event.property.post`; undefined: no feature declares it. */
  readonly find: (name: string) => RegisteredMethod | undefined
  /** Returns the methods that an action of the HTTP uplink carries, for example `PostProperty`. */
  readonly ofAction: (action: string) => ReadonlyArray<RegisteredMethod>
  /** Returns the actions of the HTTP uplink that methods declare. */
  readonly actions: () => ReadonlyArray<string>
}>()("@device-cloud/core/uplink/DeviceMethods") {
  /** A registry without methods. */
  static readonly layerEmpty: Layer.Layer<DeviceMethods> = Layer.sync(DeviceMethods, () => make())

  /** Adds an application's own methods to the provided cloud. */
  static readonly layer = <R>(
    methods: ReadonlyArray<DeviceMethod<R>>
  ): Layer.Layer<never, DuplicateDeviceMethod, DeviceMethods | R> =>
    Layer.effectDiscard(DeviceMethods.use((registry) => registry.register(methods)))
}

/** Another feature already declares a method of this name. */
export class DuplicateDeviceMethod extends DomainError<DuplicateDeviceMethod>()(
  "DuplicateDeviceMethod",
  {
    name: Schema.String
  },
  ({ name }) => `Another feature declares the device method ${name}`
) {}

/** A method with its defaults; its handler has the services that it needs. */
export interface RegisteredMethod extends Omit<DeviceMethod, "handle"> {
  readonly form: MessageForm
  readonly lane: Lane
  readonly handle?: Handle<never>
}

/** Returns an expression that matches the names of a pattern. */
const expressionOf = (pattern: string): RegExp =>
  new RegExp(
    `^${
      pattern.split("**").map((part) => part.split("*").map((text) => text.replaceAll(".", "\\.")).join("[^.]+")).join(
        ".+"
      )
    }$`
  )

const make = (): DeviceMethods["Service"] => {
  const exact = new Map<string, RegisteredMethod>()
  /** In the order of their registration. */
  let patterns: ReadonlyArray<{ readonly expression: RegExp; readonly method: RegisteredMethod }> = []

  const all = (): ReadonlyArray<RegisteredMethod> => [...exact.values(), ...patterns.map(({ method }) => method)]

  let byAction: Readonly<Record<string, ReadonlyArray<RegisteredMethod>>> = {}

  const add = (method: RegisteredMethod) => {
    if (!method.name.includes("*")) exact.set(method.name, method)
    else patterns = [...patterns, { expression: expressionOf(method.name), method }]
  }

  return {
    register: <R>(methods: ReadonlyArray<DeviceMethod<R>>) =>
      Effect.gen(function*() {
        const taken = methods.find(({ name }, i) =>
          all().some((known) => known.name === name) || methods.slice(0, i).some((earlier) => earlier.name === name)
        )
        if (taken !== undefined) return yield* new DuplicateDeviceMethod({ name: taken.name })
        const context = yield* Effect.context<R>()
        // Methods that share a handler keep sharing one: their requests run together.
        const provided = new Map<Handle<R>, Handle<never>>()
        const provide = (handle: Handle<R>): Handle<never> => {
          const known = provided.get(handle) ?? ((requests) => Effect.provideContext(handle(requests), context))
          provided.set(handle, known)
          return known
        }
        for (const { form = "request", handle, lane = "reports", ...method } of methods) {
          add({ ...method, form, lane, ...handle === undefined ? {} : { handle: provide(handle) } })
        }
        byAction = Arr.groupBy(all().filter(({ action }) => action !== undefined), ({ action }) => action!)
      }),
    find: (name) => exact.get(name) ?? patterns.find(({ expression }) => expression.test(name))?.method,
    ofAction: (action) => Object.hasOwn(byAction, action) ? byAction[action]! : [],
    actions: () => Object.keys(byAction)
  }
}
