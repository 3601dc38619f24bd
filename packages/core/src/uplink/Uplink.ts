/**
 * Takes every message of every device. `Uplink` sorts messages by the registry of
 * device methods, commits them in batches, and replies after the commit.
 */
import { Array, Cause, Context, Effect, type Exit, Layer, Option } from "effect"
import { CommandLedger } from "../command/CommandLedger.ts"
import type { CommandProgress } from "../command/Command.ts"
import { deviceKey } from "../device/Device.ts"
import { EventBus } from "../events/EventBus.ts"
import { Reactions } from "../events/Reactions.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import type { Lane } from "./DeviceMethod.ts"
import { DeviceMethods } from "./DeviceMethods.ts"
import { type DeviceReply, systemError } from "./DeviceReply.ts"
import { DeviceState } from "./DeviceState.ts"
import { type Attachment, SubDeviceDirectory } from "./SubDeviceDirectory.ts"
import * as UplinkBatch from "./UplinkBatch.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"
import * as UplinkMetrics from "./UplinkMetrics.ts"
import { UplinkStore } from "./UplinkStore.ts"

/** The end of a message: its reply, or the failure of the store. */
export type UplinkExit = Exit.Exit<DeviceReply, StoreError>

/**
 * Messages of one device take effect in the order in which transports hand them
 * over. The reply comes after the commit. While the store cannot be reached,
 * messages wait; when the queue is full, their senders wait.
 */
export class Uplink extends Context.Service<Uplink, {
  /** Takes a message and returns the reply after the commit. Waits while the queue is full. */
  readonly submit: (message: UplinkMessage) => Effect.Effect<DeviceReply, StoreError>
  /**
   * For transports that are driven by callbacks: takes a message and calls
   * `onEnd` after the commit. Returns undefined if the queue has room. Returns an
   * effect if the queue is full: the effect hands the message over as soon as
   * there is room, and the transport must stop reading until the effect ends.
   */
  readonly offer: (message: UplinkMessage, onEnd: (end: UplinkExit) => void) => Effect.Effect<void> | undefined
}>()("@device-cloud/core/uplink/Uplink") {
  static readonly layer: Layer.Layer<
    Uplink | CommandLedger,
    never,
    DeviceMethods | UplinkStore | SubDeviceDirectory | ModelCache | Reactions | EventBus
  > = Layer.effectContext(Effect.suspend(() => make))
}

/** How many messages of a lane may wait (`capacity`), and how many are in one batch. */
const lanes = {
  reports: { capacity: 8192, maxBatch: 2048 },
  gateway: { capacity: 1024, maxBatch: 64 },
  // A batch holds 64 blocks of at most 128 KiB in memory.
  downloads: { capacity: 1024, maxBatch: 64 }
} as const satisfies Record<Lane, { readonly capacity: number; readonly maxBatch: number }>

type Item = UplinkBatch.UplinkItem

const make = Effect.gen(function*() {
  const methods = yield* DeviceMethods
  const store = yield* UplinkStore
  const directory = yield* SubDeviceDirectory
  const models = yield* ModelCache
  const reactions = yield* Reactions
  const events = yield* EventBus
  const metrics = UplinkMetrics.make()
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  const logDefect = (defect: unknown) => void runFork(Effect.logError("A device method throws", defect))

  /** Looks up the sub-devices that messages name. */
  const attachmentsFor = Effect.fnUntraced(function*(items: ReadonlyArray<Item>) {
    const attachments = new Map<string, Attachment>()
    const names = UplinkBatch.namesIn(items, methods, logDefect)
    for (const found of names.length === 0 ? [] : yield* directory.attachments(names)) {
      if (Option.isSome(found)) attachments.set(deviceKey(found.value.subDevice), found.value)
    }
    return attachments
  })

  /** Loads what updates need: the models of checked products, and what reacts to changes. */
  const prepare = Effect.fnUntraced(function*({ devices }: UplinkBatch.UplinkBatch) {
    const productKeys = [...new Set(devices.map(({ device }) => device.productKey))]
    const checked = [
      ...new Set(devices.flatMap(({ device }) => device.validateType === "weak" ? [device.productKey] : []))
    ]
    const validators = yield* models.ofProducts(checked)
    if (!productKeys.every(reactions.isLoaded)) yield* reactions.load(productKeys)
    return validators
  })

  /** Sorts a batch and stores the changes of devices. Only this part of a batch is ever repeated. */
  const commit = Effect.fnUntraced(function*(items: ReadonlyArray<Item>) {
    const batch = UplinkBatch.sort(items, methods, yield* attachmentsFor(items), logDefect)
    const { devices, progress } = batch
    if (devices.length + progress.length === 0) return { batch, results: [] }
    const validators = yield* prepare(batch)
    const results = yield* store.commit({
      devices: devices.map((updates) =>
        UplinkBatch.commitOf(updates, (device, shadow) =>
          new DeviceState(
            device,
            shadow,
            device.validateType === "weak" ? validators.get(device.productKey) : undefined,
            reactions
          ))
      ),
      commands: progress
    })
    return { batch, results }
  })

  /** Logs a failure that must not affect the messages of a batch. */
  const safely = (effect: Effect.Effect<void>) =>
    Effect.catchCause(effect, (cause) => Effect.logError("What follows a batch could not be done", cause))

  /** Runs requests with the same handler together. If that fails, each runs alone, so that only the faulty one is refused. */
  const handle = (run: ReadonlyArray<UplinkBatch.PlacedRequest>): Effect.Effect<ReadonlyArray<DeviceReply>> =>
    untilStored(
      Effect.suspend(() =>
        run[0]!.method.handle!(run.map(({ message, request }) => ({ request: request as never, message })))
      )
    ).pipe(
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          run.length > 1
            ? Effect.map(Effect.forEach(run, (one) => handle([one])), Array.flatten)
            : Effect.as(Effect.logError("A request of a device could not be carried out", cause), [systemError])
      ),
      Effect.orDie
    )

  /** Runs requests in order; neighbours with the same handler run together. */
  const runRequests = Effect.fnUntraced(function*({ replies, requests }: UplinkBatch.UplinkBatch) {
    for (const run of UplinkBatch.runsOf(requests)) {
      const handled = yield* handle(run)
      run.forEach(({ place }, i) => {
        replies[place] = handled[i] ?? systemError
      })
    }
  })

  /** Does what follows the commit. No failure here makes the batch run again. */
  const conclude = Effect.fnUntraced(function*(
    items: ReadonlyArray<Item>,
    { batch, results }: Effect.Success<ReturnType<typeof commit>>
  ) {
    UplinkBatch.settle(batch, results)
    const { happened, progress, replies, requests } = batch
    for (const result of results) {
      if (Option.isNone(result)) continue
      if (result.value.reacts) reactions.wake()
      result.value.defects.forEach(logDefect)
    }
    if (happened.length > 0) yield* safely(events.publish(happened))
    if (requests.length > 0) yield* runRequests(batch)
    yield* safely(metrics.concluded(progress, replies.filter((_, place) => !UplinkBatch.isProgress(items[place]!))))
    return replies
  })

  const options = {
    commit: (items: ReadonlyArray<Item>) =>
      Effect.flatMap(
        Effect.timed(untilStored(commit(items))),
        ([duration, committed]) => Effect.as(metrics.committed(duration, items.length, reports.waiting()), committed)
      ),
    conclude,
    isolates: ({ retryable }: StoreError) => !retryable
  }

  const reports: Batcher.Batcher<Item, DeviceReply, StoreError> = yield* Batcher.makePartitioned({
    ...lanes.reports,
    ...options,
    keyOf: (item: Item) => UplinkBatch.isProgress(item) ? item.deviceId : item.device.deviceId
  })
  const batchers: Readonly<Record<Lane, Batcher.Batcher<Item, DeviceReply, StoreError>>> = {
    reports,
    gateway: yield* Batcher.makeConcluding({ ...lanes.gateway, ...options }),
    downloads: yield* Batcher.makeConcluding({ ...lanes.downloads, ...options })
  }
  const batcherOf = ({ method }: UplinkMessage) => batchers[methods.find(method)?.lane ?? "reports"]

  const noteProgress = (progress: CommandProgress) => {
    const later = reports.offer(progress, () => {})
    if (later !== undefined) runFork(later)
  }

  return Context.make(Uplink, {
    submit: (message) => batcherOf(message).submit(message),
    offer: (message, onEnd) => batcherOf(message).offer(message, onEnd)
  }).pipe(Context.add(CommandLedger, { advance: noteProgress }))
})
