/**
 * A batch of the uplink: its items, sorted by what they ask for, and their
 * replies. Pure.
 */
import { Option } from "effect"
import type { CommandProgress } from "../command/Command.ts"
import { type DeviceId, type DeviceIdentity, deviceKey } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { checkedReply } from "./CheckedReply.ts"
import type { FindSubDevice, Plan, Update } from "./DeviceMethod.ts"
import type { DeviceMethods, RegisteredMethod } from "./DeviceMethods.ts"
import { deviceNotFound, type DeviceReply, noTopology, success, systemError, topicError } from "./DeviceReply.ts"
import { type DeviceResult, DeviceUpdates, PlacedUpdate } from "./DeviceUpdates.ts"
import { ReactionBudget } from "./ReactionBudget.ts"
import type { Attachment, SubDeviceName } from "./SubDeviceDirectory.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"

/** What one batch stores: messages of devices and steps of commands. */
export type UplinkItem = UplinkMessage | CommandProgress

export const isProgress = (item: UplinkItem): item is CommandProgress => "messageId" in item

/** A request, which runs after the commit. */
export interface PlacedRequest {
  readonly place: number
  readonly method: RegisteredMethod
  readonly request: unknown
  readonly message: UplinkMessage
}

/** The sorted items of a batch. */
export interface UplinkBatch {
  readonly devices: ReadonlyArray<DeviceUpdates>
  readonly progress: ReadonlyArray<CommandProgress>
  readonly requests: ReadonlyArray<PlacedRequest>
  /** The budgets of messages about several devices. */
  readonly budgets: ReadonlyArray<ReactionBudget>
  /** What else is recorded in the feed: replies to commands. */
  readonly happened: ReadonlyArray<DomainEvent>
  /** By the place of the item. Until its handler has replied, a request has the reply `systemError`. */
  readonly replies: Array<DeviceReply>
}

/** Splits requests into runs of neighbours with the same handler. */
export const runsOf = (requests: ReadonlyArray<PlacedRequest>): ReadonlyArray<ReadonlyArray<PlacedRequest>> => {
  const runs: Array<Array<PlacedRequest>> = []
  for (const request of requests) {
    const run = runs.at(-1)
    if (run !== undefined && run[0]!.method.handle === request.method.handle) run.push(request)
    else runs.push([request])
  }
  return runs
}

/** Returns the sub-devices that messages name. They must be looked up before `sort`. A method that throws names none. */
export const namesIn = (
  items: ReadonlyArray<UplinkItem>,
  methods: DeviceMethods["Service"],
  onDefect: (defect: unknown) => void
): ReadonlyArray<SubDeviceName> => {
  const names: Array<SubDeviceName> = []
  for (const item of items) {
    if (isProgress(item)) continue
    if (item.subDevice !== undefined) names.push(item.subDevice)
    try {
      for (const name of methods.find(item.method)?.names?.(item.params) ?? []) names.push(name)
    } catch (defect) {
      onDefect(defect)
    }
  }
  return names
}

/** The reply that nobody reads: to a step of a command. */
const noted = success({})

/** Sorts items by the plans of their methods. Each item has a reply afterwards. */
export const sort = (
  items: ReadonlyArray<UplinkItem>,
  methods: DeviceMethods["Service"],
  attachments: ReadonlyMap<string, Attachment>,
  onDefect: (defect: unknown) => void
): UplinkBatch => {
  const replies: Array<DeviceReply> = items.map(() => noted)
  const byDevice = new Map<DeviceId, DeviceUpdates>()
  const progress: Array<CommandProgress> = []
  const requests: Array<PlacedRequest> = []
  const budgets: Array<ReactionBudget> = []
  const happened: Array<DomainEvent> = []

  const find: FindSubDevice = (speaker, name) => {
    const attachment = attachments.get(deviceKey(name))
    return attachment?.gateway.deviceId === speaker.deviceId ? attachment.subDevice : undefined
  }
  const addUpdate = (device: DeviceIdentity, update: Update, place: number, budget?: ReactionBudget) => {
    const known = byDevice.get(device.deviceId)
    const placed = new PlacedUpdate(place, update, budget)
    if (known === undefined) byDevice.set(device.deviceId, new DeviceUpdates(device, placed))
    else known.add(placed)
  }
  /** A method that throws, or gives no reply, refuses only its own message. */
  const planOf = (method: RegisteredMethod, message: UplinkMessage): Plan => {
    try {
      const plan = method.plan(message, find)
      if (plan._tag === "Reply") checkedReply(plan.reply)
      return plan
    } catch (defect) {
      onDefect(defect)
      return { _tag: "Reply", reply: systemError }
    }
  }

  for (let place = 0; place < items.length; place++) {
    const item = items[place]!
    if (isProgress(item)) {
      progress.push(item)
      continue
    }
    const device = item.subDevice === undefined ? item.device : find(item.device, item.subDevice)
    const method = methods.find(item.method)
    if (device === undefined || method === undefined) {
      replies[place] = device === undefined ? noTopology : topicError
      continue
    }
    const message = device === item.device ? item : { ...item, device }
    const plan = planOf(method, message)
    switch (plan._tag) {
      case "Reply":
        replies[place] = plan.reply
        break
      case "Update":
        addUpdate(device, plan.update, place)
        break
      case "Updates": {
        const budget = plan.updates.length > 1 ? new ReactionBudget() : undefined
        if (budget !== undefined) budgets.push(budget)
        for (const { device, update } of plan.updates) addUpdate(device, update, place, budget)
        break
      }
      case "Progress": {
        const { at, code, data, message, messageId } = plan.progress
        progress.push(plan.progress)
        happened.push({ _tag: "CommandReplied", device, at, messageId, code: code ?? 0, message, data })
        break
      }
      case "Request":
        replies[place] = systemError
        requests.push({ place, method, request: plan.request, message })
    }
  }
  return { replies, devices: [...byDevice.values()], progress, requests, budgets, happened }
}

/**
 * Returns false if messages about several devices set off too many reactions:
 * their updates are refused when all updates run again.
 */
export const isWithinBudgets = ({ budgets }: UplinkBatch): boolean => {
  let isWithin = true
  for (const budget of budgets) {
    if (!budget.settle()) isWithin = false
  }
  return isWithin
}

/** The reply to a message about several devices: the first refusal, or else the first reply. */
const worse = (known: DeviceReply | undefined, reply: DeviceReply): DeviceReply =>
  known === undefined || (known.code === 200 && reply.code !== 200) ? reply : known

/** Puts the replies of the devices in their places. A device without a result does not exist. */
export const settle = (
  { devices, replies }: UplinkBatch,
  results: ReadonlyArray<Option.Option<DeviceResult>>
): void => {
  const decided = new Map<number, DeviceReply>()
  for (let i = 0; i < devices.length; i++) {
    const result = Option.getOrUndefined(results[i]!)
    let j = 0
    for (let each: PlacedUpdate | undefined = devices[i]!.first; each !== undefined; each = each.next) {
      const { place } = each
      const reply = worse(decided.get(place), result?.replies[j++] ?? deviceNotFound)
      decided.set(place, reply)
      replies[place] = reply
    }
  }
}
