/**
 * The one door for everything that a device says.
 */
import { Context, Duration, Effect, type Exit, Layer, Metric, Option } from "effect"
import { reportRandom } from "../provisioning/Binding.ts"
import { BindingStore } from "../provisioning/BindingStore.ts"
import type { CommandProgress } from "../command/Command.ts"
import { CommandStore } from "../command/CommandStore.ts"
import { type DeviceId, type DeviceIdentity, deviceKey, logSwitch, maxTags } from "../device/Device.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { EventBus } from "../events/EventBus.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { answerMesh } from "../mesh/MeshMessage.ts"
import { MeshNetworks } from "../mesh/MeshNetworks.ts"
import { downloadMethod, parseBlockRequest } from "../ota/device/BlockRequest.ts"
import { FirmwareFiles } from "../ota/firmware/FirmwareFiles.ts"
import type { UpgradeReport } from "../ota/device/UpgradeMessage.ts"
import { Upgrades } from "../ota/task/Upgrades.ts"
import type { ProductKey } from "../product/Product.ts"
import { SceneTriggers } from "../scene/matching/SceneTriggers.ts"
import type { Json } from "../kernel/Json.ts"
import { ShadowStore } from "../shadow/ShadowStore.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import * as ModelFormat from "../thing-model/ModelFormat.ts"
import { emptyModel } from "../thing-model/ThingModel.ts"
import { ThingModelStore } from "../thing-model/ThingModelStore.ts"
import { GatewayMessages } from "../gateway/GatewayMessages.ts"
import type { Attachment, SubDeviceName } from "../gateway/Topology.ts"
import { TopologyStore } from "../gateway/TopologyStore.ts"
import { ModelCache } from "../thing-model/ModelCache.ts"
import { deviceNotFound, type DeviceReply, noTopology, parameterError, success, systemError } from "./DeviceReply.ts"
import { DeviceState, type Step } from "./DeviceState.ts"
import { type FindSubDevice, namesIn } from "./PropertyMessages.ts"
import { type Errand, interpret } from "./Interpretation.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"

/** Messages that may wait; a transport whose message finds no room stops reading. */
const capacity = 8192
/** Messages in one transaction. */
const maxBatch = 2048
/** What gateways ask about their sub-devices that may wait, and what is carried out one after the other. */
const gatewayCapacity = 1024
const maxGatewayRequests = 64
/** Requests for blocks of firmware that may wait. */
const downloadCapacity = 1024
/** Blocks that are in memory at once; each has 128 KiB at most. */
const maxDownloads = 64

const messages = Metric.counter("device_cloud_uplink_messages_total", {
  description: "Messages of devices, by reply code",
  incremental: true
})
const batchSize = Metric.histogram("device_cloud_uplink_batch_size", {
  description: "Messages committed together",
  boundaries: [1, 4, 16, 64, 256, 1024, 2048]
})
const queueDepth = Metric.gauge("device_cloud_uplink_queue_depth", {
  description: "Messages that wait to be committed"
})
const commandSteps = Metric.counter("device_cloud_commands_total", {
  description: "Steps of commands, by the state that they lead to",
  incremental: true
})
const commitSeconds = Metric.histogram("device_cloud_uplink_commit_seconds", {
  description: "From the start of a batch to its commit",
  boundaries: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
})

/** What is stored together: what devices say, and how far commands have come. */
type Item = UplinkMessage | CommandProgress

/** Methods of messages about sub-devices and mesh networks. */
const isGatewayMethod = /^thing\.(?:topo|sub|list|proxy|mesh)\./

const isProgress = (item: Item): item is CommandProgress => "messageId" in item

/** The messages of one device in a batch that change its state, and their places in it. */
interface DeviceSteps {
  readonly device: DeviceIdentity
  readonly indices: Array<number>
  readonly steps: Array<Step>
}

interface PlacedErrand {
  readonly device: DeviceIdentity
  readonly errand: Errand
  readonly index: number
}

/** The devices that a message names beside the one that says it. */
const namesOf = ({ method, params, subDevice }: UplinkMessage): ReadonlyArray<SubDeviceName> =>
  subDevice === undefined ? namesIn(method, params) : [subDevice]

/** The answer to a message that changes several devices: the first that failed, otherwise the gateway's own. */
const worse = (known: DeviceReply | undefined, reply: DeviceReply): DeviceReply =>
  known === undefined || (known.code === 200 && reply.code !== 200) ? reply : known

/** A batch by what its messages ask for, with the replies to those that ask for nothing more. */
const sort = (batch: ReadonlyArray<Item>, attached: ReadonlyMap<string, Attachment>) => {
  const replies = Array.from<DeviceReply>({ length: batch.length })
  const byDevice = new Map<DeviceId, DeviceSteps>()
  const progress: Array<CommandProgress> = []
  const upgrades: Array<UpgradeReport> = []
  const outcomes: Array<{ readonly device: DeviceIdentity; readonly progress: CommandProgress }> = []
  const errands: Array<PlacedErrand> = []
  const subDevices: FindSubDevice = (speaker, name) => {
    const attachment = attached.get(deviceKey(name))
    return attachment?.gateway.deviceId === speaker.deviceId ? attachment.subDevice : undefined
  }
  const change = (device: DeviceIdentity, step: Step, index: number) => {
    const known = byDevice.get(device.deviceId)
    if (known === undefined) byDevice.set(device.deviceId, { device, indices: [index], steps: [step] })
    else {
      known.indices.push(index)
      known.steps.push(step)
    }
  }
  for (let index = 0; index < batch.length; index++) {
    const message = batch[index]!
    if (isProgress(message)) {
      replies[index] = noted
      progress.push(message)
      continue
    }
    const device = message.subDevice === undefined ? message.device : subDevices(message.device, message.subDevice)
    if (device === undefined) {
      replies[index] = noTopology
      continue
    }
    const interpretation = interpret(device === message.device ? message : { ...message, device }, subDevices)
    switch (interpretation._tag) {
      case "Answer":
        replies[index] = interpretation.reply
        break
      case "Outcome":
        replies[index] = success({})
        outcomes.push({ device, progress: interpretation.progress })
        progress.push(interpretation.progress)
        break
      case "Upgrade":
        replies[index] = success({})
        upgrades.push(interpretation.report)
        break
      case "Errand":
        errands.push({ device, errand: interpretation.errand, index })
        break
      case "Change":
        change(device, interpretation.step, index)
        break
      case "Changes":
        if (interpretation.changes.length === 0) replies[index] = success({})
        for (const each of interpretation.changes) change(each.device, each.step, index)
    }
  }
  return { replies, byDevice: [...byDevice.values()], progress, outcomes, upgrades, errands }
}

const noted = success({})

/** The series of a counter by the value of one attribute; to make one anew for each count costs as much as ten counts. */
const seriesOf = (counter: Metric.Counter<number>, attribute: string) => {
  const known = new Map<string | number, Metric.Counter<number>>()
  return (value: string | number): Metric.Counter<number> => {
    let series = known.get(value)
    if (series === undefined) {
      series = Metric.withAttributes(counter, { [attribute]: String(value) })
      known.set(value, series)
    }
    return series
  }
}

/** Products whose devices report what their model admits only. */
const checkedProducts = (byDevice: ReadonlyArray<DeviceSteps>): ReadonlyArray<ProductKey> => [
  ...new Set(byDevice.flatMap(({ device }) => device.validateType === "weak" ? [device.productKey] : []))
]

const make = Effect.gen(function*() {
  const shadows = yield* ShadowStore
  const commands = yield* CommandStore
  const validators = yield* ModelCache
  const devices = yield* DeviceStore
  const models = yield* ThingModelStore
  const events = yield* EventBus
  const upgrades = yield* Upgrades
  const topology = yield* TopologyStore
  const gateways = yield* GatewayMessages
  const files = yield* FirmwareFiles
  const bindings = yield* BindingStore
  const mesh = yield* MeshNetworks
  const scenes = yield* SceneTriggers
  const messagesWith = seriesOf(messages, "code")
  const stepsTo = seriesOf(commandSteps, "state")

  const run = Effect.fnUntraced(function*({ device, errand }: PlacedErrand) {
    const { deviceId, productKey } = device
    switch (errand._tag) {
      case "SetTags":
        return tagsReply(yield* devices.changeTags(deviceId, { set: errand.tags, remove: [] }))
      case "RemoveTags":
        return tagsReply(yield* devices.changeTags(deviceId, { set: {}, remove: errand.keys }))
      case "ReadTags": {
        const tags = yield* devices.changeTags(deviceId, { set: {}, remove: [] })
        return typeof tags === "string"
          ? tagsReply(tags)
          : success(Object.entries(tags).map(([attrKey, attrValue]) => ({ attrKey, attrValue })))
      }
      case "Topology":
        return yield* gateways.answer(device, errand.request)
      case "FetchFirmware":
        return success(yield* upgrades.fetch(device, errand.module, errand.protocol))
      case "ReportRandom": {
        const { at, random } = errand
        const counts = yield* bindings.modify(deviceId, (binding) => reportRandom(binding, random, at))
        return counts ? success({}) : parameterError("random: expected the one that the cloud has made")
      }
      case "AskMesh":
        return yield* answerMesh(mesh, device, errand.request)
      case "ReadLogSwitch": {
        const found = yield* devices.get(device.projectId, { deviceId })
        return Option.match(found, {
          onNone: () => deviceNotFound,
          onSome: (detail) => success(logSwitch(detail.device))
        })
      }
      case "ReadModel": {
        const { model, version } = Option.getOrElse(
          yield* models.latest(productKey),
          () => ({ model: emptyModel, version: 0 })
        )
        return success(ModelFormat.encode("tsl", { model, productKey, version }) as Json)
      }
    }
  })

  const attachmentsNamedIn = Effect.fnUntraced(function*(batch: ReadonlyArray<Item>) {
    const names: Array<SubDeviceName> = []
    for (const item of batch) if (!isProgress(item)) names.push(...namesOf(item))
    const attached = new Map<string, Attachment>()
    for (const attachment of names.length === 0 ? [] : yield* topology.attachments(names)) {
      if (Option.isSome(attachment)) attached.set(deviceKey(attachment.value.subDevice), attachment.value)
    }
    return attached
  })

  const commit = Effect.fnUntraced(function*(batch: ReadonlyArray<Item>) {
    const { byDevice, errands, outcomes, progress, replies, upgrades: reports } = sort(
      batch,
      yield* attachmentsNamedIn(batch)
    )
    const happened: Array<DomainEvent> = []
    if (byDevice.length > 0) {
      const compiled = yield* validators.ofProducts(checkedProducts(byDevice))
      if (!byDevice.every(({ device }) => scenes.isKnown(device.productKey))) {
        yield* scenes.load([...new Set(byDevice.map(({ device }) => device.productKey))])
      }
      const answers = yield* shadows.modify(
        byDevice.map(({ device, steps }) => {
          const validator = device.validateType === "weak" ? compiled.get(device.productKey) : undefined
          return {
            deviceId: device.deviceId,
            modify: (shadow) => {
              const state = new DeviceState(device, shadow, validator, scenes)
              const replies = steps.map((step) => step(state))
              return [
                { replies, happened: state.happened, fired: state.facts.executions.length > 0 },
                state.draft.finish(),
                state.facts
              ]
            }
          }
        }),
        progress
      )
      if (answers.some((answer) => Option.isSome(answer) && answer.value.fired)) scenes.wake()
      for (let i = 0; i < byDevice.length; i++) {
        const answer = Option.getOrUndefined(answers[i]!)
        const { indices } = byDevice[i]!
        for (let j = 0; j < indices.length; j++) {
          const index = indices[j]!
          replies[index] = worse(replies[index], answer?.replies[j] ?? deviceNotFound)
        }
        if (answer !== undefined) { for (const event of answer.happened) happened.push(event) }
      }
    } else if (progress.length > 0) yield* commands.advance(progress)
    for (const { state } of progress) yield* Metric.update(stepsTo(state), 1)
    for (const { device, progress: { at, code, data, message, messageId } } of outcomes) {
      happened.push({ _tag: "CommandReplied", device, at, messageId, code: code ?? 0, message, data })
    }
    if (reports.length > 0) yield* upgrades.report(reports)
    // By themselves: what has been committed above is not committed again for them.
    for (const placed of errands) {
      replies[placed.index] = yield* run(placed).pipe(
        untilStored,
        Effect.catch((error) => Effect.as(Effect.logError("A message could not be carried out", error), systemError))
      )
    }
    if (happened.length > 0) yield* events.publish(happened)
    return replies
  })

  const measured = Effect.fnUntraced(function*(batch: ReadonlyArray<Item>) {
    const [duration, replies] = yield* Effect.timed(untilStored(commit(batch)))
    yield* Metric.update(commitSeconds, Duration.toSeconds(duration))
    yield* Metric.update(batchSize, batch.length)
    yield* Metric.update(queueDepth, items.waiting())
    for (const [code, count] of countCodes(replies)) yield* Metric.update(messagesWith(code), count)
    return replies
  })

  const items: Batcher.Batcher<Item, DeviceReply, StoreError> = yield* Batcher.makePartitioned({
    keyOf: (item: Item) => isProgress(item) ? item.deviceId : item.device.deviceId,
    capacity,
    maxBatch,
    commit: measured,
    isolate: ({ retryable }: StoreError) => !retryable
  })

  // Blocks of firmware are many and slow to read; nothing that is to be stored waits for them.
  const downloads: Batcher.Batcher<UplinkMessage, DeviceReply, StoreError> = yield* Batcher.make({
    capacity: downloadCapacity,
    maxBatch: maxDownloads,
    commit: (batch: ReadonlyArray<UplinkMessage>) =>
      untilStored(files.blocks(batch.map(({ device, params }) => ({ device, request: parseBlockRequest(params) })))),
    isolate: ({ retryable }: StoreError) => !retryable
  })
  // One request of a gateway may be many look-ups: what others say does not wait for them.
  const gatewayRequests: Batcher.Batcher<Item, DeviceReply, StoreError> = yield* Batcher.make({
    capacity: gatewayCapacity,
    maxBatch: maxGatewayRequests,
    commit: measured,
    isolate: ({ retryable }: StoreError) => !retryable
  })
  const laneOf = ({ method, subDevice }: UplinkMessage) => {
    if (method === downloadMethod && subDevice === undefined) return downloads
    return isGatewayMethod.test(method) ? gatewayRequests : items
  }

  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const advance = (progress: CommandProgress) => {
    if (!items.submitUnsafe(progress, () => {})) runFork(items.submitWhenRoom(progress, () => {}))
  }
  return Uplink.of({
    submit: (message) => laneOf(message).submit(message),
    submitUnsafe: (message, resume) => laneOf(message).submitUnsafe(message, resume),
    submitWhenRoom: (message, resume) => laneOf(message).submitWhenRoom(message, resume),
    waiting: items.waiting,
    advance
  })
})

const tagsReply = (outcome: Readonly<Record<string, string>> | "full" | "no-device"): DeviceReply => {
  if (outcome === "no-device") return deviceNotFound
  return outcome === "full" ? parameterError(`expected at most ${maxTags} tags on a device`) : success({})
}

/** How many replies to messages have which code. */
const countCodes = (replies: ReadonlyArray<DeviceReply>): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>()
  for (const reply of replies) if (reply !== noted) counts.set(reply.code, (counts.get(reply.code) ?? 0) + 1)
  return counts
}

/**
 * Messages of one device take effect in the order in which they were handed
 * over. The reply comes after the commit; the store being unreachable delays
 * it until the store is back.
 */
export class Uplink extends Context.Service<
  Uplink,
  Batcher.Batcher<UplinkMessage, DeviceReply, StoreError> & {
    /** Stores how far a command has come, together with what is said meanwhile: mostly its outcome. */
    readonly advance: (progress: CommandProgress) => void
  }
>()("@device-cloud/core/uplink/Uplink") {
  static readonly layer: Layer.Layer<
    Uplink,
    never,
    | BindingStore
    | CommandStore
    | ShadowStore
    | DeviceStore
    | ThingModelStore
    | TopologyStore
    | GatewayMessages
    | ModelCache
    | EventBus
    | Upgrades
    | FirmwareFiles
    | MeshNetworks
    | SceneTriggers
  > = Layer.effect(Uplink, make)
}

export type UplinkExit = Exit.Exit<DeviceReply, StoreError>
