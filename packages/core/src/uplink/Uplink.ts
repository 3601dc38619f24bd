/**
 * Takes every message of every device. `Uplink` sorts messages by the registry of
 * device methods, commits them in batches, and replies after the commit.
 */
import { Array, type Cause, Clock, Context, Effect, Exit, Layer, Option } from "effect"
import { ProjectActivity } from "../activity/ProjectActivity.ts"
import { Troubles } from "../activity/Troubles.ts"
import { CommandAnswers } from "../command/CommandAnswers.ts"
import { CommandLedger } from "../command/CommandLedger.ts"
import type { CommandProgress } from "../command/Command.ts"
import { type DeviceId, deviceKey } from "../device/Device.ts"
import { Reactions } from "../events/Reactions.ts"
import { Feed } from "../feed/Feed.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { given } from "../kernel/GivenEffect.ts"
import * as Outage from "../kernel/Outage.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import type { Lane } from "./DeviceMethod.ts"
import { checkedReply } from "./CheckedReply.ts"
import { DeviceMethods, type RegisteredMethod } from "./DeviceMethods.ts"
import { type DeviceReply, systemError } from "./DeviceReply.ts"
import { DeviceState } from "./DeviceState.ts"
import { commitOf } from "./DeviceUpdates.ts"
import { type Attachment, SubDeviceDirectory } from "./SubDeviceDirectory.ts"
import { maxValues, tooManyValues } from "./UplinkLimits.ts"
import { countMessages, countReplied } from "./UplinkActivity.ts"
import * as UplinkBatch from "./UplinkBatch.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"
import * as UplinkMetrics from "./UplinkMetrics.ts"
import { UplinkRates } from "./UplinkRates.ts"
import { UplinkStore } from "./UplinkStore.ts"

/** The end of a message: its reply, or the failure of the store. */
export type UplinkExit = Exit.Exit<DeviceReply, StoreError>

/**
 * Messages of one device and one lane take effect in the order in which
 * transports hand them over. The reply comes after the commit. While the store
 * cannot be reached, messages wait; when the queue is full, those wait who fill
 * it (docs/decisions/0048-fair-shares-of-the-uplink.md).
 */
export class Uplink extends Context.Service<Uplink, {
  /** Takes a message and returns the reply after the commit. */
  readonly submit: (message: UplinkMessage) => Effect.Effect<DeviceReply, StoreError>
  /**
   * For transports that are driven by callbacks: takes a message and calls
   * `onEnd` after the commit, or at once if the message is refused. Returns
   * undefined if there is room for more of this device. Otherwise returns an
   * effect: the transport must read nothing more of the device until it ends.
   */
  readonly offer: (message: UplinkMessage, onEnd: (end: UplinkExit) => void) => Effect.Effect<void> | undefined
}>()("@device-cloud/core/uplink/Uplink") {
  static readonly layer: Layer.Layer<
    Uplink | CommandLedger,
    never,
    | ProjectActivity
    | Troubles
    | CommandAnswers
    | DeviceMethods
    | UplinkStore
    | UplinkRates
    | SubDeviceDirectory
    | ModelCache
    | Reactions
    | Feed
  > = Layer.effectContext(Effect.suspend(() => make))
}

/**
 * How many messages of a lane may wait (`capacity`), and how many are in one
 * batch; the same by weight. A message weighs as much as it has values, and one
 * more for each KiB: at most 64 MiB of reports wait, and a batch writes at most
 * 16,384 values.
 */
const lanes = {
  reports: { capacity: 8192, capacityWeight: 65_536, maxBatch: 2048, maxWeight: 16_384, sharedPart: 1 / 16 },
  requests: { capacity: 8192, capacityWeight: 524_288, maxBatch: 2048, maxWeight: 2048 },
  gateway: { capacity: 1024, capacityWeight: 65_536, maxBatch: 64, maxWeight: 2048 },
  // A batch holds 64 blocks of at most 128 KiB in memory.
  downloads: { capacity: 1024, capacityWeight: 65_536, maxBatch: 64, maxWeight: 2048 }
} as const satisfies Record<Lane, Omit<Batcher.Options<never, never, never>, "commit">>

/** How long a batch is tried again before the log says so, seconds: a deadlock is over sooner. */
const patience = 2

/** Values that count as one message at the rate of the sender. */
const freeValues = 10

/** The weight of a request that runs alone: 16 of them are a batch. */
const slowWeight = 128

const weightOf = (method: RegisteredMethod | undefined, values: number, { bytes = 0 }: UplinkMessage): number =>
  Math.max(values, 1) + (bytes >> 10) + (method?.isSlow === true ? slowWeight : 0)

type Item = UplinkBatch.UplinkItem

const noAttachments = Effect.succeed(new Map<string, Attachment>())

const make = Effect.gen(function*() {
  const methods = yield* DeviceMethods
  const store = yield* UplinkStore
  const directory = yield* SubDeviceDirectory
  const models = yield* ModelCache
  const reactions = yield* Reactions
  const feed = yield* Feed
  const rates = yield* UplinkRates
  const answers = yield* CommandAnswers
  const activity = yield* ProjectActivity
  const troubles = yield* Troubles
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const metrics = UplinkMetrics.make(context)
  const runFork = Effect.runForkWith(context)

  const logDefect = (defect: unknown) => void runFork(Effect.logError("A device method throws", defect))

  /** Looks up the sub-devices that messages name. */
  const attachmentsFor = (
    items: ReadonlyArray<Item>
  ): Effect.Effect<ReadonlyMap<string, Attachment>, StoreError> => {
    const names = UplinkBatch.namesIn(items, methods, logDefect)
    if (names.length === 0) return noAttachments
    return Effect.map(directory.attachments(names), (all) => {
      const found = all.flatMap(Option.toArray)
      return new Map(found.map((attachment) => [deviceKey(attachment.subDevice), attachment]))
    })
  }

  /** Loads what updates need: the models of products, and what reacts to changes. */
  const prepare = ({ devices }: UplinkBatch.UplinkBatch) => {
    const productKeys = [...new Set(devices.map(({ device }) => device.productKey))]
    const loaded = models.ofProducts(productKeys)
    return productKeys.every(reactions.isLoaded) ? loaded : Effect.tap(loaded, reactions.load(productKeys))
  }

  /** Sorts a batch and stores the changes of devices. Only this part of a batch is ever repeated. */
  const commit = Effect.fnUntraced(function*(items: ReadonlyArray<Item>) {
    const batch = UplinkBatch.sort(items, methods, yield* attachmentsFor(items), logDefect)
    const { devices, happened, progress } = batch
    if (devices.length + progress.length === 0) return { batch, results: [] }
    const loaded = yield* prepare(batch)
    const results = yield* store.commit({
      devices: devices.map((updates) =>
        commitOf(
          updates,
          (device, shadow, follows) =>
            new DeviceState(device, shadow, loaded.get(device.productKey), reactions, follows)
        )
      ),
      commands: progress,
      happened,
      isComplete: () => UplinkBatch.isWithinBudgets(batch)
    })
    return { batch, results }
  })

  /** Logs a failure that must not affect the messages of a batch. */
  const safely = (effect: Effect.Effect<void>) =>
    Effect.catchCause(effect, (cause) => Effect.logError("What follows a batch could not be done", cause))

  /** Runs requests with the same handler together. If that fails, each runs alone, so that only the faulty one is refused. */
  const handle = (run: ReadonlyArray<UplinkBatch.PlacedRequest>): Effect.Effect<ReadonlyArray<DeviceReply>> =>
    untilStored(
      given(
        run[0]!.method.name,
        () => run[0]!.method.handle!(run.map(({ message, request }) => ({ request: request as never, message })))
      )
    ).pipe(
      Effect.flatMap((replies) => Effect.forEach(run, (_, i) => replyOf(replies[i]))),
      Effect.catchCause((cause) =>
        run.length > 1
          ? Effect.map(Effect.forEach(run, (one) => handle([one])), Array.flatten)
          : Effect.map(refused(cause), Array.of)
      )
    )

  const refused = (cause: Cause.Cause<unknown>) =>
    Effect.as(Effect.logError("A request of a device could not be carried out", cause), systemError)

  /** What was carried out does not run again for a reply that is none. */
  const replyOf = (reply: DeviceReply | undefined) => Effect.catchCause(Effect.sync(() => checkedReply(reply)), refused)

  /** Runs requests in order; neighbours with the same handler run together. */
  const runRequests = Effect.fnUntraced(function*({ replies, requests }: UplinkBatch.UplinkBatch) {
    for (const run of UplinkBatch.runsOf(requests)) {
      const handled = yield* handle(run)
      run.forEach(({ place }, i) => {
        replies[place] = handled[i]!
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
    let timesAhead = 0
    for (const result of results) {
      if (Option.isNone(result)) continue
      timesAhead += result.value.timesAhead
      if (result.value.reacts) reactions.wake()
      result.value.defects.forEach(logDefect)
    }
    if (progress.length > 0) answers.stepped(progress)
    countReplied(activity, happened)
    if (results.length + progress.length > 0) feed.wake()
    if (requests.length > 0) yield* runRequests(batch)
    countMessages(activity, troubles, items, replies)
    const messageReplies = replies.filter((_, place) => !UplinkBatch.isProgress(items[place]!))
    yield* safely(Effect.sync(() => metrics.concluded(progress, messageReplies, timesAhead)))
    return replies
  })

  const outage = Outage.make("What devices say cannot be stored; trying again")
  const storedAgain = Effect.flatMap(
    outage.over,
    (hasFailed) => hasFailed ? Effect.logInfo("What devices say is stored again") : Effect.void
  )

  const options = {
    commit: (items: ReadonlyArray<Item>) => {
      const began = clock.monotonicTimeNanosUnsafe()
      const seconds = () => Number(clock.monotonicTimeNanosUnsafe() - began) / 1e9
      let isLate = false
      const attempt = Effect.tapError(commit(items), (error) => {
        if (!error.retryable || seconds() < patience) return Effect.void
        isLate = true
        return outage.failed(error)
      })
      return Effect.map(untilStored(attempt), (committed) => {
        metrics.committed(seconds(), items.length, reports.waiting())
        if (isLate) runFork(storedAgain)
        return committed
      })
    },
    conclude,
    isolates: ({ retryable }: StoreError) => !retryable,
    keyOf: (item: Item) => UplinkBatch.isProgress(item) ? item.deviceId : (item.carrier ?? item.device).deviceId,
    groupOf: (item: Item) => UplinkBatch.isProgress(item) ? "" : item.device.projectId
  }

  const reports: Batcher.Batcher<Item, DeviceReply, StoreError> = yield* Batcher.makePartitioned({
    ...lanes.reports,
    ...options
  })
  const batchers: Readonly<Record<Lane, Batcher.Batcher<Item, DeviceReply, StoreError>>> = {
    reports,
    requests: yield* Batcher.makeConcluding({ ...lanes.requests, ...options }),
    gateway: yield* Batcher.makeConcluding({ ...lanes.gateway, ...options }),
    downloads: yield* Batcher.makeConcluding({ ...lanes.downloads, ...options })
  }

  /** Counts the values in a message, at the rate of its sender too. A method that throws is refused with its batch. */
  const valuesIn = (method: RegisteredMethod | undefined, { carrier, device, params }: UplinkMessage): number => {
    if (method?.values === undefined) return 1
    try {
      const values = method.values(params)
      if (values > freeValues) rates.charge(carrier ?? device, Math.min(values, maxValues) / freeValues - 1, 0)
      return values
    } catch (defect) {
      logDefect(defect)
      return 1
    }
  }

  const batcherOf = (method: RegisteredMethod | undefined) => batchers[method?.lane ?? "reports"]

  const refuseValues = ({ device: { deviceId, projectId } }: UplinkMessage) => {
    activity.count(projectId, "refused", 1, tooManyValues.code)
    troubles.note(projectId, "refused", deviceId, String(tooManyValues.code))
    return tooManyValues
  }

  const noteProgress = (progress: CommandProgress) => {
    const later = reports.offer(progress, () => {})
    if (later !== undefined) runFork(later)
  }

  /** A step of no command is stored after all that the device has said so far. */
  const settled = (deviceId: DeviceId) =>
    Effect.ignore(
      reports.submit({ deviceId, messageId: 0, state: "queued", code: null, message: "", data: {}, at: 0 })
    )

  return Context.make(Uplink, {
    submit: (message) =>
      Effect.suspend(() => {
        const method = methods.find(message.method)
        const values = valuesIn(method, message)
        return values > maxValues
          ? Effect.succeed(refuseValues(message))
          : batcherOf(method).submit(message, weightOf(method, values, message))
      }),
    offer: (message, onEnd) => {
      const method = methods.find(message.method)
      const values = valuesIn(method, message)
      if (values > maxValues) return void onEnd(Exit.succeed(refuseValues(message)))
      return batcherOf(method).offer(message, onEnd, weightOf(method, values, message))
    }
  }).pipe(Context.add(CommandLedger, { advance: noteProgress, settled }))
})
