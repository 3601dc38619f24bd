/**
 * The devices of a typed thing model: what is set, called, read and heard has the
 * types of the model (docs/typed-models.md).
 */
import { Effect, Stream } from "effect"
import { Commands, type Waited, type WaitOptions } from "./command/Commands.ts"
import type { Device, DeviceId } from "./device/Device.ts"
import type { DomainEvent } from "./events/DomainEvent.ts"
import type { Json } from "./kernel/Json.ts"
import { Feed } from "./feed/Feed.ts"
import type { FeedPlace } from "./feed/FeedStore.ts"
import type { ProductKey } from "./product/Product.ts"
import type { ProjectId } from "./project/Project.ts"
import type { StoreError } from "./kernel/StoreError.ts"
import type { ShadowSide } from "./shadow/Shadow.ts"
import { Shadows } from "./shadow/Shadows.ts"
import {
  type Desired,
  type EventOutputs,
  fittingOutputs,
  fittingProperties,
  fittingReply,
  type Reported,
  type ServiceInputs,
  type ServiceOutputs,
  type TypedModel,
  type Writable
} from "./thing-model/TypedModel.ts"

/** Values with their times, Unix milliseconds; a property that has no value is missing. */
export type TypedSide<Values> = {
  readonly [Id in keyof Values]?: { readonly value: Values[Id]; readonly time: number }
}

/** A shadow whose values fit the model; others are left out. */
export interface TypedShadow<M extends TypedModel> {
  readonly device: Device
  readonly version: number
  readonly reported: TypedSide<Reported<M>>
  readonly desired: TypedSide<Desired<M>>
}

/** A command, whether its caller has waited for its end, and the outputs of the device's reply. */
export interface TypedReply<Outputs> extends Waited {
  /** Undefined: no reply has come, the device has refused, or its outputs do not fit the model. */
  readonly outputs: Outputs | undefined
}

/** Of which device an event is, and when it happened, Unix milliseconds. */
export interface Origin {
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  readonly deviceId: DeviceId
  readonly time: number
}

/** What devices of the model say. `id` is that of the event of the model; null: they report properties. */
export type TypedEvent<M extends TypedModel> =
  | { readonly id: null; readonly values: Partial<Reported<M>>; readonly origin: Origin }
  | {
    readonly [Id in keyof EventOutputs<M>]: {
      readonly id: Id
      readonly outputs: EventOutputs<M>[Id]
      readonly origin: Origin
    }
  }[keyof EventOutputs<M>]

/** Which events to hear. */
export interface EventsOptions {
  readonly projectId: ProjectId
  readonly productKey: ProductKey
  /** Default: from now on. */
  readonly after?: FeedPlace | undefined
}

type Refusal<Method extends keyof Commands["Service"]> = Commands["Service"][Method] extends (
  ...args: infer _Args
) => Effect.Effect<infer _A, infer E> ? E
  : never

/** The devices of a model. */
export interface TypedDevices<M extends TypedModel> {
  /** Sets properties; waits and fails as `Commands.request`. */
  readonly setProperties: (
    projectId: ProjectId,
    deviceId: DeviceId,
    values: Partial<Writable<M>>,
    options?: WaitOptions
  ) => Effect.Effect<Waited, Refusal<"request">>
  /** Merges desired values into the shadow; null removes one. Fails as `Shadows.desire`. */
  readonly desire: (
    projectId: ProjectId,
    deviceId: DeviceId,
    values: { readonly [Id in keyof Writable<M>]?: Writable<M>[Id] | null },
    version?: number
  ) => Effect.Effect<void, Effect.Error<ReturnType<Shadows["Service"]["desire"]>>>
  /** Returns the shadow and its device. */
  readonly shadow: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<TypedShadow<M>, Effect.Error<ReturnType<Shadows["Service"]["get"]>>>
  /** Calls a service: each by its id. Waits and fails as `Commands.request`. */
  readonly services: {
    readonly [Id in keyof ServiceInputs<M>]: (
      projectId: ProjectId,
      deviceId: DeviceId,
      inputs: ServiceInputs<M>[Id],
      options?: WaitOptions
    ) => Effect.Effect<
      TypedReply<Id extends keyof ServiceOutputs<M> ? ServiceOutputs<M>[Id] : never>,
      Refusal<"request">
    >
  }
  /** Emits what the devices of a product say; what does not fit the model is left out. */
  readonly events: (options: EventsOptions) => Stream.Stream<TypedEvent<M>, StoreError>
}

/**
 * The devices of a model.
 *
 * ```ts
 * const lamps = yield* TypedDevices.of(lamp)
 * yield* lamps.setProperties(defaultProjectId, deviceId, { power: true })
 * const { reported } = yield* lamps.shadow(defaultProjectId, deviceId)
 * reported.energy?.value // number | undefined
 * ```
 *
 * The cloud checks calls against the model that the product has: import the same one.
 */
export const of = Effect.fnUntraced(function*<M extends TypedModel>(
  model: M
): Effect.fn.Return<TypedDevices<M>, never, Commands | Feed | Shadows> {
  const commands = yield* Commands
  const feed = yield* Feed
  const shadows = yield* Shadows

  const request = (
    projectId: ProjectId,
    deviceId: DeviceId,
    serviceId: string | null,
    params: unknown,
    options: WaitOptions | undefined
  ) => commands.request(projectId, deviceId, serviceId, params as Readonly<Record<string, Json>>, options)

  const services = Object.fromEntries(
    model.validator.model.services.map(({ id }) => [
      id,
      (projectId: ProjectId, deviceId: DeviceId, inputs: unknown, options?: WaitOptions) =>
        Effect.map(request(projectId, deviceId, id, inputs, options), (waited) => ({
          ...waited,
          outputs: waited.command.code === 200 ? fittingReply(model, id, waited.command.data) : undefined
        }))
    ])
  )

  return {
    setProperties: (projectId, deviceId, values, options) => request(projectId, deviceId, null, values, options),
    desire: (projectId, deviceId, values, version) =>
      Effect.asVoid(shadows.desire(projectId, deviceId, values as Readonly<Record<string, Json>>, version)),
    shadow: (projectId, deviceId) =>
      Effect.map(shadows.get(projectId, deviceId), ({ device, shadow: { desired, reported, version } }) => ({
        device,
        version,
        reported: fittingSide(model, reported) as TypedSide<Reported<M>>,
        desired: fittingSide(model, desired) as TypedSide<Desired<M>>
      })),
    services: services as TypedDevices<M>["services"],
    events: ({ after, productKey, projectId }) =>
      feed.stream({ projectId, after }).pipe(
        Stream.filter(({ event }) => event.device?.productKey === productKey),
        Stream.map(({ event }) => typedEvent(model, event)),
        Stream.filter((event) => event !== undefined)
      )
  }
})

/**
 * What a device of the model says in an event of the feed; undefined: the event is
 * of another kind, or does not fit the model. Leave events of other products out before.
 *
 * ```ts
 * const said = TypedDevices.typedEvent(lamp, entry.event)
 * if (said?.id === "overheated") yield* alarm(said.outputs.at)
 * ```
 */
export const typedEvent = <M extends TypedModel>(model: M, event: DomainEvent): TypedEvent<M> | undefined => {
  if (event._tag !== "PropertiesReported" && event._tag !== "EventReported") return undefined
  const { deviceId, productKey, projectId } = event.device
  const origin: Origin = { projectId, productKey, deviceId, time: event.at }
  if (event._tag === "PropertiesReported") {
    return { id: null, values: fittingProperties(model, valuesOf(event.properties)), origin }
  }
  const { eventId } = event
  const outputs = fittingOutputs(model, eventId as never, event.value)
  return outputs === undefined
    ? undefined
    : { id: eventId, outputs, origin: { ...origin, time: event.time } } as object as TypedEvent<M>
}

const valuesOf = (entries: Readonly<Record<string, { readonly value: Json }>>) =>
  Object.fromEntries(Object.entries(entries).map(([id, { value }]) => [id, value]))

const fittingSide = (model: TypedModel, side: ShadowSide): object => {
  const values = fittingProperties(model, valuesOf(side)) as Readonly<Record<string, Json | undefined>>
  return Object.fromEntries(
    Object.entries(values).map(([id, value]) => [id, value === undefined ? value : { value, time: side[id]!.time }])
  )
}
