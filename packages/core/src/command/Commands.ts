/**
 * Sets properties and calls services of devices. Each call is a command in the
 * store, from the call to its one end (docs/api/commands.md).
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { DownlinkMessage } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { type DeviceId, type DeviceIdentity, deviceIdentity, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import { isFiniteJson, type Json } from "../kernel/Json.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { ShadowDraft } from "../shadow/Shadow.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import { Misfit } from "../thing-model/DataType.ts"
import { isUsableId } from "../thing-model/formats/Elements.ts"
import { checkValues, InvalidValues } from "../thing-model/InvalidValues.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import { ElementNotFound } from "../thing-model/ThingModel.ts"
import {
  type CallOptions,
  type Command,
  CommandNotFound,
  CommandNotQueued,
  type NewCommand,
  ServiceIsSync,
  setsProperties,
  TimeToLive,
  TooManyCommands,
  UserMessage
} from "./Command.ts"
import { CommandDelivery } from "./CommandDelivery.ts"
import { CommandStore, type Enqueue } from "./CommandStore.ts"

type Params = Readonly<Record<string, Json>>

type Refused =
  | DeviceNotFound
  | InvalidInput
  | InvalidValues
  | TooManyCommands
  | StoreError

export class Commands extends Context.Service<Commands, {
  /**
   * Sets 1 to 200 properties, now or when the device comes back. The params are at
   * most 128 Ki characters of JSON with 16 levels. For a device that is not
   * connected, the values also become desired values of its shadow, which fails
   * with `InvalidInput` when the shadow is full. With a thing model, the
   * properties must be writable and the values fit.
   */
  readonly setProperties: (
    projectId: ProjectId,
    deviceId: DeviceId,
    params: Params,
    options?: CallOptions
  ) => Effect.Effect<Command, Refused>
  /**
   * Calls a service of the device, now or when the device comes back; params as
   * in `setProperties`. With a thing model, fails with `ElementNotFound` if the
   * model has no such service, with `ServiceIsSync` if the service is
   * synchronous, and with `InvalidValues` if the inputs do not fit.
   */
  readonly callService: (
    projectId: ProjectId,
    deviceId: DeviceId,
    serviceId: string,
    params: Params,
    options?: CallOptions
  ) => Effect.Effect<Command, ElementNotFound | ServiceIsSync | Refused>
  /**
   * Sends bytes, at most 128 Ki characters with their encoding, on a user topic
   * of the device, now or when the device comes back.
   */
  readonly sendUserMessage: (
    projectId: ProjectId,
    deviceId: DeviceId,
    message: UserMessage,
    options?: CallOptions
  ) => Effect.Effect<Command, Refused>
  /**
   * Returns the commands that wait for a device without a connection, oldest
   * first, at most 100, and notes them as sent.
   */
  readonly pull: (device: DeviceIdentity) => Effect.Effect<ReadonlyArray<DownlinkMessage>, StoreError>
  /** Returns the command of the device with this id. */
  readonly get: (
    projectId: ProjectId,
    deviceId: DeviceId,
    messageId: number
  ) => Effect.Effect<Command, DeviceNotFound | CommandNotFound | StoreError>
  /** Returns the commands of the device, newest first. */
  readonly list: (
    projectId: ProjectId,
    deviceId: DeviceId,
    page: PageRequest
  ) => Effect.Effect<Page<Command>, DeviceNotFound | StoreError>
  /**
   * Cancels a queued command; a cancelled one stays cancelled. Fails with
   * `CommandNotQueued` for any other state.
   */
  readonly cancel: (
    projectId: ProjectId,
    deviceId: DeviceId,
    messageId: number
  ) => Effect.Effect<void, DeviceNotFound | CommandNotFound | CommandNotQueued | StoreError>
}>()("@device-cloud/core/command/Commands") {
  static readonly layer: Layer.Layer<
    Commands,
    never,
    CommandStore | CommandDelivery | ShadowStore | Devices | ModelCache | DeviceSessions
  > = Layer.effect(Commands, Effect.suspend(() => make))
}

const defaultTtlSeconds = 7 * 24 * 3600
/** Properties in one call. */
const maxProperties = 200
/** The parameters of one call as JSON, in UTF-16 code units. */
const maxParamsLength = 128 * 1024
/** Levels of objects and arrays in the parameters. */
const maxParamsNesting = 16

/** Calls that may wait to be stored. */
const capacity = 8192
/** Commands in one transaction. */
const maxBatch = 1024

const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const decodeUserMessage = decodeInput(UserMessage)
const decodeTtl = decodeInput(TimeToLive)

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const delivery = yield* CommandDelivery
  const shadows = yield* ShadowStore
  const devices = yield* Devices
  const models = yield* ModelCache
  const sessions = yield* DeviceSessions

  const enqueued = yield* Batcher.makeConcluding<
    Enqueue,
    ReadonlyArray<Command | "full" | "no-device">,
    Command | "full" | "no-device",
    StoreError
  >({
    capacity,
    maxBatch,
    commit: store.enqueue,
    isolates: ({ retryable }) => !retryable,
    conclude: (_, results) =>
      Effect.as(delivery.dispatch(results.filter((result) => typeof result !== "string")), results)
  })

  /** Fails with `InvalidInput` if the shadow has no room for the values. */
  const roomFor = Effect.fnUntraced(function*({ deviceId }: DeviceIdentity, values: Params) {
    const at = yield* Clock.currentTimeMillis
    const shadow = yield* shadows.get(deviceId)
    if (Option.isNone(shadow)) return
    const draft = new ShadowDraft(shadow.value)
    for (const [id, value] of Object.entries(values)) {
      const reason = draft.desire(id, value, at)
      if (reason !== undefined) {
        return yield* new InvalidInput({ issues: [{ path: ["params", id], message: reason }] })
      }
    }
  })

  /** Returns the device. A device that is connected to this node is not looked up. */
  const find = Effect.fnUntraced(function*(projectId: ProjectId, deviceId: DeviceId) {
    const connected = sessions.session(deviceId)?.connection.device
    if (connected?.projectId === projectId) return { device: connected, isOnline: true }
    const detail = yield* devices.get(projectId, { deviceId })
    return { device: deviceIdentity(detail), isOnline: detail.device.status === "online" }
  })

  const submit = Effect.fnUntraced(function*(
    { device, isOnline }: Effect.Success<ReturnType<typeof find>>,
    call: Pick<NewCommand, "serviceId" | "userTopic" | "params">,
    { origin, ttl: requested = defaultTtlSeconds }: CallOptions
  ) {
    if (!isFiniteJson(call.params, maxParamsNesting)) {
      return yield* refuse("params", `Expected JSON of at most ${maxParamsNesting} levels`)
    }
    if (JSON.stringify(call.params).length > maxParamsLength) {
      return yield* refuse("params", `Expected at most ${maxParamsLength} characters of JSON`)
    }
    const ttl = yield* Effect.mapError(
      decodeTtl(requested),
      ({ issues: [{ message }] }) => new InvalidInput({ issues: [{ path: ["ttl"], message }] })
    )
    const { deviceId, projectId } = device
    const createdAt = yield* Clock.currentTimeMillis
    const connection = delivery.connectionOf(deviceId)
    const isDesired = connection === "none" && !isOnline && ttl > 0 && setsProperties(call)
    // Checked before anything is stored.
    if (isDesired) yield* roomFor(device, call.params)
    const result = yield* enqueued.submit({
      command: {
        projectId,
        deviceId,
        createdAt,
        expiresAt: createdAt + ttl * 1000,
        origin,
        state: connection === "open" ? "sent" : "queued",
        // V8 copies a spread fast only when it stands last.
        ...call
      },
      ...isDesired ? { desire: desire(call.params, createdAt) } : {}
    })
    if (result === "full") return yield* new TooManyCommands({ deviceId })
    if (result === "no-device") return yield* DeviceNotFound.of({ deviceId })
    return result
  })

  // No spans for these two: a span captures a stack, which costs as much as the checks.
  const setProperties = Effect.fnUntraced(
    function*(projectId: ProjectId, deviceId: DeviceId, params: Params, options: CallOptions = {}) {
      const found = yield* find(projectId, deviceId)
      const count = Object.keys(params).length
      if (count === 0 || count > maxProperties) {
        return yield* refuse("params", `Expected 1 to ${maxProperties} properties`)
      }
      const validator = Option.getOrUndefined(yield* models.ofProduct(found.device.productKey))
      const admitted = validator === undefined
        ? params
        : yield* checkValues(params, (id, value) => validator.desired(id, value))
      return yield* submit(found, { serviceId: null, userTopic: null, params: admitted }, options)
    }
  )

  const callService = Effect.fnUntraced(
    function*(
      projectId: ProjectId,
      deviceId: DeviceId,
      serviceId: string,
      params: Params,
      options: CallOptions = {}
    ) {
      const found = yield* find(projectId, deviceId)
      const { productKey } = found.device
      const validator = Option.getOrUndefined(yield* models.ofProduct(productKey))
      if (validator === undefined) {
        return isUsableId(serviceId)
          ? yield* submit(found, { serviceId, userTopic: null, params }, options)
          : yield* refuse("service_id", "Expected 1 to 50 letters, digits and _, no reserved word")
      }
      const service = validator.service(serviceId)
      if (service === undefined) return yield* new ElementNotFound({ productKey, type: "service", id: serviceId })
      if (service.element.callType === "sync") return yield* new ServiceIsSync({ serviceId })
      const checked = service.input(params)
      if (checked instanceof Misfit) {
        return yield* new InvalidValues({ issues: [{ path: ["params"], message: checked.message }] })
      }
      return yield* submit(found, { serviceId, userTopic: null, params: checked }, options)
    }
  )

  const sendUserMessage = Effect.fn("Commands.sendUserMessage")(
    function*(projectId: ProjectId, deviceId: DeviceId, input: UserMessage, options: CallOptions = {}) {
      const { topic, ...params } = yield* decodeUserMessage(input)
      if (params.encoding === "base64" && !isBase64.test(params.payload)) {
        return yield* refuse("payload", "Expected base64")
      }
      const found = yield* find(projectId, deviceId)
      return yield* submit(found, { serviceId: null, userTopic: topic, params }, options)
    }
  )

  const get = Effect.fn("Commands.get")(function*(projectId: ProjectId, deviceId: DeviceId, messageId: number) {
    yield* devices.get(projectId, { deviceId })
    const command = yield* store.get(deviceId, messageId)
    return yield* Effect.fromOption(command, () => new CommandNotFound({ messageId: String(messageId) }))
  })

  const list = Effect.fn("Commands.list")(function*(projectId: ProjectId, deviceId: DeviceId, page: PageRequest) {
    yield* devices.get(projectId, { deviceId })
    return yield* store.list(deviceId, page)
  })

  const cancel = Effect.fn("Commands.cancel")(function*(projectId: ProjectId, deviceId: DeviceId, messageId: number) {
    yield* devices.get(projectId, { deviceId })
    const command = yield* Effect.fromOption(
      yield* store.cancel(deviceId, messageId, yield* Clock.currentTimeMillis),
      () => new CommandNotFound({ messageId: String(messageId) })
    )
    if (command.state !== "cancelled") {
      return yield* new CommandNotQueued({ messageId: String(messageId), state: command.state })
    }
  })

  return Commands.of({ setProperties, callService, sendUserMessage, pull: delivery.pull, get, list, cancel })
})

const refuse = (field: string, message: string) =>
  Effect.fail(new InvalidInput({ issues: [{ path: [field], message }] }))

const desire = (params: Params, at: number): NonNullable<Enqueue["desire"]> => (shadow) => {
  const draft = new ShadowDraft(shadow)
  for (const [id, value] of Object.entries(params)) draft.desire(id, value, at)
  draft.accept(at)
  return [undefined, draft.finish()]
}
