/**
 * A command ends once, and for a reason; a device gets its commands in order, and none
 * again that it has dealt with (docs/protocol/commands.md, docs/ownership.md C1 to C5).
 */
import { type Command, CommandStore, type DeviceId, type DeviceIdentity, finalRank, rankOf } from "@device-cloud/core"
import { Effect, Option } from "effect"
import type { Link } from "../Link.ts"
import type { Inspection, Invariant } from "../Witness.ts"

export const oneEnd = "a command has one end"
export const reason = "a command ends for a reason"
export const inOrder = "commands come in order"
export const notAgain = "a command that was dealt with does not come again"

/** What the outside knows of a command. */
interface Known {
  readonly deviceId: DeviceId
  /** What was issued; undefined: it was not issued by an operator, or he has not heard of it yet. */
  command: Command | undefined
  /** The code of the device's reply that the cloud has acknowledged. */
  answer: number | undefined
  /** Since when the cloud knows that the device has dealt with it, Unix milliseconds. */
  dealtWithAt: number | undefined
  deliveries: number
  /** The end that was seen first. */
  end: Command | undefined
}

/** What a device that is not connected gets of a new session after all it was sent is stored, milliseconds. */
const handOver = 1000

const isFinal = ({ state }: Command): boolean => rankOf(state) === finalRank

export const make = ({ read, time, violated, wasDisturbed }: Inspection): Invariant => {
  const commands = new Map<number, Known>()
  const open = new Set<number>()
  /** The latest command that each device got through each connection. */
  const latest = new WeakMap<Link, Map<DeviceId, number>>()
  const gone = new Set<DeviceId>()

  const known = (deviceId: DeviceId, messageId: number): Known => {
    let one = commands.get(messageId)
    if (one === undefined) {
      one = {
        deviceId,
        command: undefined,
        answer: undefined,
        dealtWithAt: undefined,
        deliveries: 0,
        end: undefined
      }
      commands.set(messageId, one)
      open.add(messageId)
    }
    return one
  }

  const stored = (deviceId: DeviceId, messageId: number): Command | undefined =>
    Option.getOrUndefined(
      read(Effect.flatMap(Effect.service(CommandStore), (store) => store.get(deviceId, messageId)))
    )

  const describe = ({ code, deliveries, messageId, state, message }: Command) =>
    `command ${messageId} (${state}, code ${code}, ${deliveries} deliveries, "${message}")`

  /** Whether an end has happened as far as the outside knows. */
  const isReasonable = ({ answer, deliveries }: Known, end: Command): boolean => {
    switch (end.state) {
      case "succeeded":
        return end.code === null
          ? deliveries > 0 || end.message.includes("reported")
          : answer === 200 || answer === undefined
      case "failed":
        return end.code === null ? end.message.includes("not answered") : answer !== 200
      case "expired":
        return end.message.includes("not connected") || end.updatedAt >= end.expiresAt
      default:
        return end.state === "cancelled"
    }
  }

  /** Looks whether the command has ended, and that it has not moved since its end. */
  const look = (messageId: number): Command | undefined => {
    const one = commands.get(messageId)!
    const now = stored(one.deviceId, messageId)
    if (now === undefined) return undefined
    const { end } = one
    if (end !== undefined) {
      if (now.state !== end.state || now.code !== end.code || now.updatedAt !== end.updatedAt) {
        violated(oneEnd, `${describe(end)} is ${describe(now)} later`)
      }
    } else if (isFinal(now)) {
      one.end = now
      open.delete(messageId)
      if (!isReasonable(one, now)) violated(reason, `${describe(now)}; the device has answered ${one.answer}`)
    }
    return now
  }

  const dealtWith = (device: DeviceIdentity, messageId: number, one: Known) => {
    one.dealtWithAt ??= time.now
    const now = look(messageId)
    return now === undefined || gone.has(device.deviceId) ? undefined : now
  }

  return {
    issued: (command) => {
      known(command.deviceId, command.messageId).command = command
      look(command.messageId)
    },
    deleted: ({ deviceId }) => void gone.add(deviceId),
    delivered: (link, device, message) => {
      const isCommand = message.method.startsWith("thing.service.") || message.method === "user"
      if (!isCommand || device === undefined) return
      const messageId = Number(message.id)
      const one = known(device.deviceId, messageId)
      one.deliveries++
      if (one.deviceId !== device.deviceId) {
        violated(inOrder, `${device.deviceName} got command ${messageId} of another device`)
      }
      const byDevice = latest.get(link) ?? new Map<DeviceId, number>()
      latest.set(link, byDevice)
      const before = byDevice.get(device.deviceId) ?? 0
      if (messageId <= before) violated(inOrder, `${device.deviceName} got command ${messageId} after ${before}`)
      byDevice.set(device.deviceId, messageId)
      const { dealtWithAt } = one
      if (dealtWithAt === undefined || dealtWithAt + handOver > link.attachedAt!) return
      if (wasDisturbed(undefined, dealtWithAt - 5 * handOver, time.now)) return
      violated(notAgain, `${device.deviceName} got command ${messageId} again, dealt with at ${dealtWithAt}`)
    },
    confirmed: (device, messageId) => {
      const one = known(device.deviceId, messageId)
      // The confirmation ends a user message; all else needs an answer, too.
      if (one.command !== undefined && one.command.userTopic !== null) one.dealtWithAt ??= time.now
    },
    answered: (device, messageId, code) => {
      const one = known(device.deviceId, messageId)
      one.answer ??= code
      const now = dealtWith(device, messageId, one)
      if (now !== undefined && !isFinal(now)) violated(oneEnd, `${describe(now)} was answered with ${code}`)
    },
    minute: () => {
      for (const messageId of open) look(messageId)
    },
    finished: () => {
      for (const messageId of commands.keys()) {
        const now = look(messageId)
        if (now !== undefined && !isFinal(now)) violated(oneEnd, `${describe(now)} has no end`)
      }
    }
  }
}
