/**
 * Sets properties and calls services of devices, through the ledger.
 */
import { Clock, Context, Effect, Layer, Option, Schedule, Schema } from "effect"
import { DeviceId, type DeviceIdentity, deviceIdentity, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import { type DeviceSession, DeviceSessions, type DownlinkMessage } from "../connection/DeviceSessions.ts"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { ProjectId } from "../project/Project.ts"
import { delta, type Shadow, ShadowDraft } from "../shadow/Shadow.ts"
import { equalJson, isFiniteJson, type Json } from "../kernel/Json.ts"
import { shadowControl } from "../shadow/ShadowDocument.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { checkValues, InvalidValues } from "../thing-model/InvalidValues.ts"
import { Misfit } from "../thing-model/DataType.ts"
import { isUsableId } from "../thing-model/formats/Elements.ts"
import { ElementNotFound } from "../thing-model/ThingModel.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import {
  type CallOptions,
  type Command,
  CommandNotFound,
  CommandNotQueued,
  type CommandState,
  finalRank,
  methodOf,
  type NewCommand,
  rankOf,
  ServiceIsSync,
  TimeToLive,
  TooManyCommands,
  UserMessage
} from "./Command.ts"
import { CommandLedger } from "./CommandLedger.ts"
import { CommandStore, type Enqueue } from "./CommandStore.ts"

const defaultTtlSeconds = 7 * 24 * 3600
/** How long a device that got a command in time may take to answer it, milliseconds. */
const replyGrace = 60_000
const expireEvery = "1 second"
const expireLimit = 1000
/** Properties in one call. */
const maxProperties = 200
/** The parameters of one call as JSON, in UTF-16 code units. */
const maxParamsLength = 128 * 1024
/** Objects and arrays inside each other in the parameters. */
const maxParamsNesting = 16
/** Commands that are read at once for a device that comes back. */
const flushLimit = 100

const capacity = 8192
const maxBatch = 1024

/** Commands that a node stores for devices that are not connected to it. */
const CommandWaiting = NodeBus.channel("command/waiting", Schema.Struct({ deviceId: DeviceId }))

type Params = Readonly<Record<string, Json>>

/** How far the commands of a session's device have been delivered. */
interface Delivery {
  readonly session: DeviceSession
  /** Commands are being read from the ledger; new ones are found there. */
  flushing: boolean
  /** A command has come while the ledger was being read. */
  dirty: boolean
  /** The latest that was handed to the connection. */
  lastDelivered: number
}

/** What a command is that neither calls a service nor carries a user message. */
const setsProperties = { serviceId: null, userTopic: null } as const

const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const decodeUserMessage = decodeInput(UserMessage)
const decodeTtl = decodeInput(TimeToLive)

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const shadows = yield* ShadowStore
  const devices = yield* Devices
  const validators = yield* ModelCache
  const link = yield* DeviceSessions
  const waitingElsewhere = yield* CommandWaiting
  const ledger = yield* CommandLedger
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const deliveries = new WeakMap<DeviceSession, Delivery>()

  const advance = ({ deviceId, messageId }: Command, state: CommandState, message = "") =>
    ledger.advance({ deviceId, messageId, state, code: null, message, data: {}, at: clock.currentTimeMillisUnsafe() })

  const deliver = Effect.fnUntraced(function*(delivery: Delivery, command: Command, params = command.params) {
    delivery.lastDelivered = command.messageId
    yield* delivery.session.connection.deliver(
      messageOf(command, params),
      () => advance(command, command.userTopic === null ? "acked" : "succeeded")
    )
    if (command.state === "queued") advance(command, "sent")
  })

  /** The delivery to the session that counts now. */
  const currentDelivery = (deviceId: DeviceId): Delivery | undefined => {
    const session = link.session(deviceId)
    return session === undefined ? undefined : deliveries.get(session)
  }

  const dispatch = Effect.fnUntraced(function*(command: Command) {
    // Called once more, after it has ended.
    if (rankOf(command.state) === finalRank) return
    const delivery = currentDelivery(command.deviceId)
    if (delivery?.flushing === true) delivery.dirty = true
    // The ledger may have been read between the commit and this turn.
    else if (delivery !== undefined && command.messageId <= delivery.lastDelivered) return
    else if (delivery?.session.connection.backlog() !== undefined) flushBeside(delivery)
    else if (delivery !== undefined) yield* deliver(delivery, command)
    else if (command.expiresAt <= command.createdAt) advance(command, "expired", "the device is not connected")
  })

  /** The device of each may be connecting to another node right now. */
  const tellOthers = (commands: ReadonlyArray<Command>) => {
    const deviceIds = new Set(commands.map(({ deviceId }) => deviceId).filter((id) => link.session(id) === undefined))
    if (deviceIds.size === 0) return Effect.void
    return waitingElsewhere.publish([...deviceIds].map((deviceId) => ({ deviceId }))).pipe(
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of commands", error))
    )
  }

  const enqueued = yield* Batcher.make<Enqueue, Command | "full" | "no-device", StoreError>({
    capacity,
    maxBatch,
    commit: Effect.fnUntraced(function*(items) {
      const results = yield* store.enqueue(items)
      const commands = results.filter((result) => typeof result !== "string")
      yield* tellOthers(commands)
      for (const command of commands) yield* dispatch(command)
      return results
    }),
    isolates: ({ retryable }) => !retryable
  })

  /** What of the properties the device has not reported itself since the call. */
  const stillWanted = (command: Command, { reported }: Shadow): Params =>
    Object.fromEntries(
      Object.entries(command.params).filter(([id]) =>
        !Object.hasOwn(reported, id) || reported[id]!.time < command.createdAt
      )
    )

  /** The device has reported all properties since the call. */
  const endOvertaken = (command: Command, { reported }: Shadow) => {
    const reached = Object.entries(command.params).every(([id, value]) => equalJson(reported[id]!.value, value))
    advance(
      command,
      reached ? "succeeded" : "cancelled",
      reached ? "the device has reported these values" : "the device has reported later values"
    )
  }

  const redeliver = Effect.fnUntraced(function*(delivery: Delivery, command: Command, shadow: Shadow) {
    if (!setsAnything(command)) return yield* deliver(delivery, command)
    const params = stillWanted(command, shadow)
    if (Object.keys(params).length > 0) return yield* deliver(delivery, command, params)
    delivery.lastDelivered = command.messageId
    endOvertaken(command, shadow)
  })

  const pull = Effect.fnUntraced(function*({ deviceId }: DeviceIdentity) {
    if (link.session(deviceId) !== undefined) return []
    const shadow = yield* shadows.get(deviceId)
    if (Option.isNone(shadow)) return []
    const now = yield* Clock.currentTimeMillis
    const messages: Array<DownlinkMessage> = []
    for (const command of yield* store.undelivered({ deviceId, after: 0, now, limit: flushLimit })) {
      const params = setsAnything(command) ? stillWanted(command, shadow.value) : command.params
      if (Object.keys(params).length === 0 && setsAnything(command)) endOvertaken(command, shadow.value)
      else {
        messages.push(messageOf(command, params))
        if (command.state === "queued") advance(command, "sent")
      }
    }
    return messages
  })

  /** Delivers what is in the ledger for the device, in order, until nothing is left. */
  const flush = Effect.fnUntraced(function*(delivery: Delivery) {
    const { deviceId } = delivery.session.connection.device
    const shadow = yield* untilStored(shadows.get(deviceId))
    if (Option.isSome(shadow) && Object.keys(delta(shadow.value)).length > 0) {
      yield* link.deliver(deviceId, shadowControl(shadow.value))
    }
    while (Option.isSome(shadow) && currentDelivery(deviceId) === delivery) {
      delivery.dirty = false
      const commands = yield* untilStored(store.undelivered({
        deviceId,
        after: delivery.lastDelivered,
        now: yield* Clock.currentTimeMillis,
        limit: flushLimit
      }))
      for (const command of commands) {
        yield* delivery.session.connection.backlog() ?? Effect.void
        yield* redeliver(delivery, command, shadow.value)
      }
      if (commands.length === 0 && !delivery.dirty) {
        // In one turn with the last look at `dirty`.
        delivery.flushing = false
        return
      }
    }
  })

  const flushBeside = (delivery: Delivery) => {
    delivery.flushing = true
    runFork(
      flush(delivery).pipe(
        Effect.ensuring(Effect.sync(() => {
          delivery.flushing = false
        })),
        Effect.catchCause((cause) => Effect.logError("The waiting commands of a device could not be delivered", cause))
      )
    )
  }

  yield* link.listen({
    // What is called for it meanwhile waits in the ledger.
    attaching: (session) => deliveries.set(session, { session, flushing: true, dirty: false, lastDelivered: 0 }),
    attached: (session, waiting) => {
      const delivery = deliveries.get(session)
      if (delivery === undefined) return
      if (waiting || delivery.dirty) flushBeside(delivery)
      else delivery.flushing = false
    },
    detached: (session) => deliveries.delete(session)
  })

  const lookAgain = (session: DeviceSession | undefined) => {
    const delivery = session === undefined ? undefined : deliveries.get(session)
    if (delivery?.flushing === true) delivery.dirty = true
    else if (delivery !== undefined) flushBeside(delivery)
  }
  yield* waitingElsewhere.subscribe({
    heard: ({ deviceId }) => Effect.sync(() => lookAgain(link.session(deviceId))),
    missed: Effect.sync(() => link.sessions().forEach(lookAgain))
  })

  const expire = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    while ((yield* store.expire({ now, grace: replyGrace, limit: expireLimit })) === expireLimit) {
      yield* Effect.yieldNow
    }
  })
  yield* expire.pipe(
    Effect.catch((error) => Effect.logWarning("Commands could not be expired", error)),
    Effect.repeat(Schedule.spaced(expireEvery)),
    Effect.forkScoped
  )

  /** Fails when the values break a limit of the shadow. */
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

  /** The device, which need not be looked up when it is connected here. */
  const find = Effect.fnUntraced(function*(projectId: ProjectId, deviceId: DeviceId) {
    const connected = link.session(deviceId)?.connection.device
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
    const delivery = currentDelivery(deviceId)
    const isDesired = delivery === undefined && !isOnline && ttl > 0 && setsAnything(call)
    // A shadow that is full refuses before anything is stored.
    if (isDesired) yield* roomFor(device, call.params)
    const result = yield* enqueued.submit({
      command: {
        projectId,
        deviceId,
        createdAt,
        expiresAt: createdAt + ttl * 1000,
        origin,
        state: delivery?.flushing === false ? "sent" : "queued",
        // Last: in front of other members a spread is slow.
        ...call
      },
      ...isDesired ? { desire: desire(call.params, createdAt) } : {}
    })
    if (result === "full") return yield* new TooManyCommands({ deviceId })
    if (result === "no-device") return yield* DeviceNotFound.of({ deviceId })
    return result
  })

  // Without spans, these two: to capture the stack for one costs as much as the checks.
  const setProperties = Effect.fnUntraced(
    function*(projectId: ProjectId, deviceId: DeviceId, params: Params, options: CallOptions = {}) {
      const found = yield* find(projectId, deviceId)
      const count = Object.keys(params).length
      if (count === 0 || count > maxProperties) {
        return yield* refuse("params", `Expected 1 to ${maxProperties} properties`)
      }
      const validator = Option.getOrUndefined(yield* validators.ofProduct(found.device.productKey))
      const admitted = validator === undefined
        ? params
        : yield* checkValues(params, (id, value) => validator.desired(id, value))
      return yield* submit(found, { ...setsProperties, params: admitted }, options)
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
      const validator = Option.getOrUndefined(yield* validators.ofProduct(productKey))
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

  return Commands.of({ setProperties, callService, sendUserMessage, pull, get, list, cancel })
})

/** Whether the command sets properties. */
const setsAnything = (command: Pick<Command, "serviceId" | "userTopic">): boolean =>
  methodOf(command) === methodOf(setsProperties)

const messageOf = (command: Command, params: Params): DownlinkMessage => ({
  id: String(command.messageId),
  method: methodOf(command),
  params: command.userTopic === null ? params : { ...params, topic: command.userTopic }
})

const refuse = (field: string, message: string) =>
  Effect.fail(new InvalidInput({ issues: [{ path: [field], message }] }))

const desire = (params: Params, at: number): NonNullable<Enqueue["desire"]> => (shadow) => {
  const draft = new ShadowDraft(shadow)
  for (const [id, value] of Object.entries(params)) draft.desire(id, value, at)
  draft.accept(at)
  return [undefined, draft.finish()]
}

type Refused =
  | DeviceNotFound
  | InvalidInput
  | InvalidValues
  | TooManyCommands
  | StoreError

export class Commands extends Context.Service<Commands, {
  /**
   * Sends the values to the device, now or when it comes back; what it is not
   * connected for is also desired of its shadow. With a thing model, they must
   * fit it and the properties be writable.
   */
  readonly setProperties: (
    projectId: ProjectId,
    deviceId: DeviceId,
    params: Params,
    options?: CallOptions
  ) => Effect.Effect<Command, Refused>
  /** With a thing model, it must have the service, asynchronous, and the inputs fit it. */
  readonly callService: (
    projectId: ProjectId,
    deviceId: DeviceId,
    serviceId: string,
    params: Params,
    options?: CallOptions
  ) => Effect.Effect<Command, ElementNotFound | ServiceIsSync | Refused>
  /** Sends bytes on a topic that the application and the device agree on, now or when the device comes back. */
  readonly sendUserMessage: (
    projectId: ProjectId,
    deviceId: DeviceId,
    message: UserMessage,
    options?: CallOptions
  ) => Effect.Effect<Command, Refused>
  /** What waits for a device that fetches it over a transport without connections, oldest first, at most 100. */
  readonly pull: (device: DeviceIdentity) => Effect.Effect<ReadonlyArray<DownlinkMessage>, StoreError>
  readonly get: (
    projectId: ProjectId,
    deviceId: DeviceId,
    messageId: number
  ) => Effect.Effect<Command, DeviceNotFound | CommandNotFound | StoreError>
  /** Newest first. */
  readonly list: (
    projectId: ProjectId,
    deviceId: DeviceId,
    page: PageRequest
  ) => Effect.Effect<Page<Command>, DeviceNotFound | StoreError>
  /** Only a queued command can be cancelled. */
  readonly cancel: (
    projectId: ProjectId,
    deviceId: DeviceId,
    messageId: number
  ) => Effect.Effect<void, DeviceNotFound | CommandNotFound | CommandNotQueued | StoreError>
}>()("@device-cloud/core/command/Commands") {
  static readonly layer: Layer.Layer<
    Commands,
    never,
    CommandStore | ShadowStore | Devices | ModelCache | DeviceSessions | NodeBus | CommandLedger
  > = Layer.effect(Commands, make)
}
