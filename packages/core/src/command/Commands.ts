/**
 * Sets properties and calls services of devices. Each call is a command in the
 * store, from the call to its one end (docs/api/commands.md). A device that is
 * disabled takes none.
 */
import { Clock, Context, Effect, Exit, identity, Layer, Option, Struct } from "effect"
import type { CodecCache } from "../codec/CodecCache.ts"
import { CurrentAction } from "../audit/AuditedAction.ts"
import type { NewAuditEntry } from "../audit/AuditEntry.ts"
import { AuditStore } from "../audit/AuditStore.ts"
import type { DownlinkMessage } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { DeviceDisabled, type DeviceId, type DeviceIdentity, deviceIdentity, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"
import { type IsModelled, ShadowDraft } from "../shadow/Shadow.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import type { InvalidValues } from "../thing-model/InvalidValues.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import type { ElementNotFound } from "../thing-model/ThingModel.ts"
import * as CallCheck from "./CallCheck.ts"
import {
  type CallOptions,
  type Command,
  CommandNotFound,
  CommandNotQueued,
  defaultTtlSeconds,
  DeviceNotConnected,
  NoReply,
  RawBytes,
  rawTopic,
  setsProperties,
  TimeToLive,
  TooManyCommands,
  WaitTime
} from "./Command.ts"
import { CommandAnswers } from "./CommandAnswers.ts"
import { CommandDelivery, type Dispatched } from "./CommandDelivery.ts"
import { CommandStore, type Enqueue, type Enqueued, type NotEnqueued } from "./CommandStore.ts"
import { decodeUserMessage, type UserMessage } from "./UserMessage.ts"

type Params = Readonly<Record<string, Json>>

type Refused =
  | DeviceNotFound
  | DeviceDisabled
  | InvalidInput
  | InvalidValues
  | TooManyCommands
  | StoreError

export class Commands extends Context.Service<Commands, {
  /**
   * Sets 1 to 200 properties, now or when the device comes back. The params are at
   * most 128 Ki characters of JSON with 16 levels. For a device that is offline,
   * the values also become desired values of its shadow unless `ttl` is 0, which
   * fails with `InvalidInput` when the shadow is full or a value has more than 8
   * levels. With a thing model, the properties must be writable and the values fit.
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
   * model has no such service, and with `InvalidValues` if the inputs do not fit.
   */
  readonly callService: (
    projectId: ProjectId,
    deviceId: DeviceId,
    serviceId: string,
    params: Params,
    options?: CallOptions
  ) => Effect.Effect<Command, ElementNotFound | Refused>
  /**
   * Fails as a call to a device of the product would, whose form or values do not
   * fit; `serviceId` null: it sets properties. Without a product, the thing model
   * and the codec are left out.
   */
  readonly check: (
    productKey: ProductKey | undefined,
    serviceId: string | null,
    params: Params
  ) => Effect.Effect<void, InvalidInput | InvalidValues | ElementNotFound | StoreError>
  /**
   * Sets properties (`serviceId` null) or calls a service, and waits until the
   * command has ended: `wait` seconds, 0 to 30; default 8 for services whose
   * `callType` is `sync`, 0 for all else. With 0 it returns the command as it is
   * stored. Otherwise it fails with `DeviceNotConnected`, before anything is stored,
   * if the device holds no connection to any node, and with `NoReply` if the command
   * has not ended in time, which then goes on.
   */
  readonly request: (
    projectId: ProjectId,
    deviceId: DeviceId,
    serviceId: string | null,
    params: Params,
    options?: WaitOptions
  ) => Effect.Effect<Waited, ElementNotFound | DeviceNotConnected | NoReply | Refused>
  /**
   * Sends bytes, at most 128 Ki characters with their encoding, on a user topic
   * of the device, now or when the device comes back. With `wait` above 0 it calls
   * the device on the topic for such calls and waits for the bytes of its reply, as
   * `request` does; they are the payload of `data`, a `UserMessage` without topic.
   */
  readonly sendUserMessage: (
    projectId: ProjectId,
    deviceId: DeviceId,
    message: UserMessage,
    options?: WaitOptions
  ) => Effect.Effect<Waited, DeviceNotConnected | NoReply | Refused>
  /**
   * Sends bytes, given as hex text, on the topic for bytes of the device, now or
   * when the device comes back. The product needs no codec.
   */
  readonly sendRaw: (
    projectId: ProjectId,
    deviceId: DeviceId,
    data: string,
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
  ) => Effect.Effect<Page<Command>, InvalidInput | DeviceNotFound | StoreError>
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
    | AuditStore
    | CommandStore
    | CommandAnswers
    | CommandDelivery
    | ShadowStore
    | CodecCache
    | Devices
    | ModelCache
    | DeviceSessions
  > = Layer.effect(Commands, Effect.suspend(() => make))
}

/** What a caller that may wait decides about a call. */
export interface WaitOptions extends CallOptions {
  /** Seconds, 0 to 30. */
  readonly wait?: number | undefined
}

/** A command, and whether its caller has waited for its end. */
export interface Waited {
  readonly command: Command
  readonly hasWaited: boolean
}

/** Seconds that the caller of a synchronous service waits. */
const defaultWait = 8

/** Calls that may wait to be stored. */
const capacity = 8192
/** Commands in one transaction. */
const maxBatch = 1024

/** How long a command for a device that must be connected may take to reach it through another node, milliseconds. */
const reachTime = 5000

/** Devices of which this node remembers that they are connected to other nodes. */
const maxElsewhere = 10_000

/** A command with what its caller wants, and with the entry of the audit log that is stored with it. */
interface Submission extends Enqueue, Pick<Dispatched, "onlyNow" | "wait"> {
  readonly entry?: NewAuditEntry
}

const decodeRaw = decodeInput(RawBytes)
const decodeTtl = decodeInput(TimeToLive)
const decodeWait = decodeInput(WaitTime)

/** Makes a function that does all of its work when its effect runs. */
const whenRun = <A extends ReadonlyArray<unknown>, B, E, R>(
  body: (...args: A) => Effect.Effect<B, E, R>
): (...args: A) => Effect.Effect<B, E, R> =>
(...args) => Effect.suspend(() => body(...args))

const make = Effect.gen(function*() {
  const store = yield* CommandStore
  const audit = yield* AuditStore
  const delivery = yield* CommandDelivery
  const answers = yield* CommandAnswers
  const shadows = yield* ShadowStore
  const devices = yield* Devices
  const models = yield* ModelCache
  const checks = yield* CallCheck.make
  const sessions = yield* DeviceSessions
  const clock = yield* Clock.Clock

  const enqueued = yield* Batcher.makeConcluding<
    Submission,
    ReadonlyArray<Enqueued | NotEnqueued>,
    Enqueued | NotEnqueued,
    StoreError
  >({
    capacity,
    maxBatch,
    commit: (items) =>
      items.some(({ entry }) => entry !== undefined)
        ? audit.commit(
          store.enqueue(items),
          (results) =>
            items.flatMap(({ entry }, i) => entry === undefined || typeof results[i] === "string" ? [] : [entry])
        )
        : store.enqueue(items),
    isolates: ({ retryable }) => !retryable,
    conclude: (items, results) => {
      const dispatched = results.flatMap((result, i) => {
        if (typeof result === "string") return []
        const { onlyNow, wait } = items[i]!
        // V8 copies a spread fast only when it stands last.
        return [{ onlyNow, wait, ...result }]
      })
      return Effect.as(delivery.dispatch(dispatched), results)
    }
  })

  /** Fails with `InvalidInput` if the shadow has no room for the values. */
  const roomFor = Effect.fnUntraced(function*({ deviceId }: DeviceIdentity, values: Params, isModelled?: IsModelled) {
    const at = yield* Clock.currentTimeMillis
    const shadow = yield* shadows.get(deviceId)
    if (Option.isNone(shadow)) return
    const draft = new ShadowDraft(shadow.value, isModelled)
    for (const [id, value] of Object.entries(values)) {
      const reason = draft.desire(id, value, at)
      if (reason !== undefined) {
        return yield* new InvalidInput({ issues: [{ path: ["params", id], message: reason }] })
      }
    }
  })

  /** Devices that were connected to another node when a command for them was last stored, the oldest first. */
  const elsewhere = new Map<DeviceId, DeviceIdentity>()

  const remember = (device: DeviceIdentity, { owner }: Enqueued) => {
    const { deviceId } = device
    elsewhere.delete(deviceId)
    if (owner === undefined || sessions.session(deviceId) !== undefined) return
    if (elsewhere.size >= maxElsewhere) elsewhere.delete(elsewhere.keys().next().value!)
    elsewhere.set(deviceId, device)
  }

  /**
   * Returns the device, unless it is disabled. A device that is connected is not
   * looked up: the store takes no command for one that is disabled.
   */
  const find = Effect.fnUntracedEager(function*(projectId: ProjectId, deviceId: DeviceId) {
    const connected = sessions.session(deviceId)?.connection.device ?? elsewhere.get(deviceId)
    if (connected?.projectId === projectId) return { device: connected, isOnline: true }
    const detail = yield* devices.get(projectId, { deviceId })
    const { deviceName, enabled, productKey } = detail.device
    if (!enabled) return yield* new DeviceDisabled({ productKey, deviceName })
    return { device: deviceIdentity(detail), isOnline: detail.device.status === "online" }
  })

  const submit = Effect.fnUntraced(function*(
    { device, isOnline }: Effect.Success<ReturnType<typeof find>>,
    call: CallCheck.Call,
    { origin, ttl: requested = defaultTtlSeconds, wait }: WaitOptions,
    isModelled?: IsModelled
  ) {
    yield* checks.fits(device.productKey, call)
    const ttl = yield* Effect.mapErrorEager(
      decodeTtl(requested),
      ({ issues: [{ message }] }) => new InvalidInput({ issues: [{ path: ["ttl"], message }] })
    )
    const { deviceId, projectId } = device
    const createdAt = clock.currentTimeMillisUnsafe()
    const mayBeDesired = ttl > 0 && setsProperties(call)
    const isDesired = mayBeDesired && !isOnline
    // Checked before anything is stored.
    if (isDesired) yield* roomFor(device, call.params, isModelled)
    const action = yield* CurrentAction
    const entry = action?.take(createdAt)
    const enqueue = Effect.suspend(() =>
      enqueued.submit({
        command: {
          projectId,
          deviceId,
          createdAt,
          expiresAt: createdAt + (ttl === 0 ? reachTime : ttl * 1000),
          origin,
          // V8 copies a spread fast only when it stands last.
          ...call
        },
        epoch: delivery.openEpoch(deviceId),
        onlyNow: ttl === 0,
        wait,
        ...isDesired ? { desire: desire(call.params, createdAt, isModelled) } : {},
        // A call that comes again finds its command by its origin, and may wait for it.
        ...entry === undefined ? {} : { entry: origin === undefined ? entry : Struct.omit(entry, ["claim"]) }
      })
    )
    const result = yield* Effect.flatMap(
      enqueue,
      (first) =>
        first === "full"
          ? Effect.flatMap(delivery.makeRoom(deviceId), (hasRoom) => hasRoom ? enqueue : Effect.succeed(first))
          : Effect.succeed(first)
    ).pipe(
      entry === undefined
        ? identity
        : Effect.onExit((exit) => {
          action!.settle(Exit.isSuccess(exit) && typeof exit.value !== "string")
          return Effect.void
        })
    )
    if (typeof result === "string") {
      elsewhere.delete(deviceId)
      switch (result) {
        case "full":
          return yield* new TooManyCommands({ deviceId })
        case "disabled":
          return yield* new DeviceDisabled({ productKey: device.productKey, deviceName: device.deviceName })
        case "no-device":
          return yield* DeviceNotFound.of({ deviceId })
      }
    }
    // A device that was connected to another node is not any more.
    if (mayBeDesired && elsewhere.has(deviceId) && result.owner === undefined && result.previous !== undefined) {
      yield* shadows.modify([{ deviceId, modify: desire(call.params, createdAt, isModelled) }])
    }
    remember(device, result)
    return result.command
  })

  // What is at hand costs no step of the fiber. No spans: a span captures a stack, which costs as much as the checks.
  const setProperties = (projectId: ProjectId, deviceId: DeviceId, params: Params, options: WaitOptions = {}) =>
    Effect.flatMapEager(find(projectId, deviceId), (found) =>
      Effect.flatMapEager(
        checks.toSetProperties(found.device.productKey, params),
        ({ call, isModelled }) => submit(found, call, options, isModelled)
      ))

  const callService = (
    projectId: ProjectId,
    deviceId: DeviceId,
    serviceId: string,
    params: Params,
    options: WaitOptions = {}
  ) =>
    Effect.flatMapEager(find(projectId, deviceId), (found) =>
      Effect.flatMapEager(
        checks.toCallService(found.device.productKey, serviceId, params),
        (call) => submit(found, call, options)
      ))

  const check: Commands["Service"]["check"] = Effect.fnUntraced(function*(productKey, serviceId, params) {
    const call = serviceId === null
      ? (yield* checks.toSetProperties(productKey, params)).call
      : yield* checks.toCallService(productKey, serviceId, params)
    yield* checks.fits(productKey, call)
  })

  /** The seconds that a call without `wait` waits. */
  const waitOf = Effect.fnUntracedEager(function*(projectId: ProjectId, deviceId: DeviceId, serviceId: string | null) {
    if (serviceId === null) return 0
    const { device } = yield* find(projectId, deviceId)
    const validator = Option.getOrUndefined(yield* models.ofProduct(device.productKey))
    return validator?.service(serviceId)?.element.callType === "sync" ? defaultWait : 0
  })

  /** Makes a call, and waits for its end if the device is connected. */
  const waitFor = Effect.fnUntraced(function*<E>(
    projectId: ProjectId,
    deviceId: DeviceId,
    wait: number,
    call: (wait: number) => Effect.Effect<Command, E>
  ): Effect.fn.Return<Waited, E | DeviceNotFound | DeviceDisabled | DeviceNotConnected | NoReply | StoreError> {
    const { device } = yield* find(projectId, deviceId)
    if (
      sessions.session(device.deviceId) === undefined && (yield* sessions.connected([deviceId])).length === 0
    ) {
      return yield* new DeviceNotConnected({ deviceId })
    }
    const command = yield* call(wait)
    const ended = yield* answers.untilEnded(command, wait)
    if (Option.isSome(ended)) return { command: ended.value, hasWaited: true }
    // A command does not go on without its device.
    yield* devices.get(projectId, { deviceId })
    return yield* new NoReply({ messageId: String(command.messageId) })
  })

  /** Makes a call that waits so many seconds; 0: not at all. */
  const callAndWait = <E>(
    projectId: ProjectId,
    deviceId: DeviceId,
    wanted: number,
    call: (wait: number | undefined) => Effect.Effect<Command, E>
  ) =>
    Effect.flatMapEager(
      Effect.mapErrorEager(
        decodeWait(wanted),
        ({ issues: [{ message }] }) => new InvalidInput({ issues: [{ path: ["wait"], message }] })
      ),
      (wait) =>
        wait === 0
          ? Effect.map(call(undefined), (command): Waited => ({ command, hasWaited: false }))
          : waitFor(projectId, deviceId, wait, call)
    )

  const request: Commands["Service"]["request"] = (projectId, deviceId, serviceId, params, { wait, ...options } = {}) =>
    Effect.flatMapEager(
      wait === undefined ? waitOf(projectId, deviceId, serviceId) : Effect.succeed(wait),
      (wanted) =>
        callAndWait(
          projectId,
          deviceId,
          wanted,
          (wait): Effect.Effect<Command, ElementNotFound | Refused> =>
            serviceId === null
              ? setProperties(projectId, deviceId, params, { ...options, wait })
              : callService(projectId, deviceId, serviceId, params, { ...options, wait })
        )
    )

  const sendUserMessage: Commands["Service"]["sendUserMessage"] = Effect.fn("Commands.sendUserMessage")(
    function*(projectId, deviceId, input, { wait = 0, ...options } = {}) {
      const { topic, ...params } = yield* decodeUserMessage(input)
      return yield* callAndWait(projectId, deviceId, wait, (wait) =>
        Effect.flatMap(
          find(projectId, deviceId),
          (found) =>
            submit(found, { serviceId: null, userTopic: topic, params, synchronous: wait !== undefined }, {
              ...options,
              wait
            })
        ))
    }
  )

  const sendRaw = Effect.fn("Commands.sendRaw")(
    function*(projectId: ProjectId, deviceId: DeviceId, data: string, options: CallOptions = {}) {
      const bytes = yield* Effect.mapError(
        decodeRaw(data),
        ({ issues: [{ message }] }) => new InvalidInput({ issues: [{ path: ["data"], message }] })
      )
      const found = yield* find(projectId, deviceId)
      const params = { data: bytes.toLowerCase() }
      return yield* submit(found, { serviceId: null, userTopic: rawTopic, params }, options)
    }
  )

  const get = Effect.fn("Commands.get")(function*(projectId: ProjectId, deviceId: DeviceId, messageId: number) {
    yield* devices.get(projectId, { deviceId })
    const command = yield* store.get(deviceId, messageId)
    return yield* Effect.fromOption(command, () => new CommandNotFound({ messageId: String(messageId) }))
  })

  const list = Effect.fn("Commands.list")(function*(projectId: ProjectId, deviceId: DeviceId, page: PageRequest) {
    yield* devices.get(projectId, { deviceId })
    return yield* paged(store.list)(deviceId, page)
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

  return Commands.of({
    setProperties: whenRun(setProperties),
    callService: whenRun(callService),
    check,
    request: whenRun(request),
    sendUserMessage,
    sendRaw,
    pull: delivery.pull,
    get,
    list,
    cancel
  })
})

const desire = (params: Params, at: number, isModelled?: IsModelled): NonNullable<Enqueue["desire"]> => (shadow) => {
  const draft = new ShadowDraft(shadow, isModelled)
  for (const [id, value] of Object.entries(params)) draft.desire(id, value, at)
  draft.accept(at)
  return [undefined, draft.finish()]
}
