/**
 * The commands of all devices, with an index of those that have not ended.
 */
import { type Command, type CommandProgress, type DeviceId, finalRank, rankOf } from "@device-cloud/core"

/** Ended commands that are kept for each device. */
const kept = 100

/** Origins that are remembered; the oldest are forgotten first. */
const maxNamed = 10_000

type Commands = Map<number, Command>

export class CommandTable {
  readonly #all = new Map<DeviceId, Commands>()
  readonly #open = new Map<DeviceId, Commands>()
  /** Message id by device and origin, the oldest first. */
  readonly #named = new Map<string, number>()
  /** No command has changed before, Unix milliseconds. */
  #earliest = Number.POSITIVE_INFINITY

  /** All commands of a device, oldest first. */
  of(deviceId: DeviceId): ReadonlyArray<Command> {
    return [...this.#all.get(deviceId)?.values() ?? []]
  }

  get(deviceId: DeviceId, messageId: number): Command | undefined {
    return this.#all.get(deviceId)?.get(messageId)
  }

  /** The command of a device that has this origin. */
  ofOrigin(deviceId: DeviceId, origin: string): Command | undefined {
    return this.get(deviceId, this.#named.get(`${deviceId} ${origin}`) ?? 0)
  }

  /** Remembers the origin of a command. */
  name({ deviceId, messageId }: Command, origin: string): void {
    this.#named.set(`${deviceId} ${origin}`, messageId)
    if (this.#named.size > maxNamed) this.#named.delete(this.#named.keys().next().value!)
  }

  /** The commands of a device that have not ended, oldest first. */
  openOf(deviceId: DeviceId): ReadonlyArray<Command> {
    return [...this.#open.get(deviceId)?.values() ?? []]
  }

  countOpen(deviceId: DeviceId): number {
    return this.#open.get(deviceId)?.size ?? 0
  }

  *open(): Iterable<Command> {
    for (const commands of this.#open.values()) yield* commands.values()
  }

  put(command: Command): void {
    const { deviceId, messageId, state, updatedAt } = command
    this.#earliest = Math.min(this.#earliest, updatedAt)
    const all = commandsOf(this.#all, deviceId)
    all.set(messageId, command)
    const open = commandsOf(this.#open, deviceId)
    if (rankOf(state) < finalRank) open.set(messageId, command)
    else open.delete(messageId)
    if (open.size === 0) this.#open.delete(deviceId)
    if (all.size > kept + open.size) this.#forgetOldest(all, open)
  }

  #forgetOldest(all: Commands, open: Commands): void {
    for (const messageId of all.keys()) {
      if (open.has(messageId)) continue
      all.delete(messageId)
      return
    }
  }

  /**
   * Moves commands forward and counts their deliveries. A step changes nothing if
   * the command has ended or belongs to another device, or is further and the step
   * is no delivery. What the device has answered was delivered.
   */
  advance(steps: ReadonlyArray<CommandProgress>): void {
    for (const { at, deviceId, messageId, ...step } of steps) {
      const command = this.#open.get(deviceId)?.get(messageId)
      const isFurther = command !== undefined && rankOf(step.state) > rankOf(command.state)
      const deliveries = step.state === "sent" ? 1 : 0
      if (command === undefined || (!isFurther && deliveries === 0)) continue
      this.put({
        ...command,
        ...isFurther ? step : {},
        deliveries: Math.max(command.deliveries + deliveries, step.code === null ? 0 : 1),
        updatedAt: at
      })
    }
  }

  /** Removes commands that ended before `before`, Unix milliseconds, at most `limit`. Returns how many. */
  prune(before: number, limit: number): number {
    if (before <= this.#earliest) return 0
    let count = 0
    for (const commands of this.#all.values()) {
      for (const { messageId, state, updatedAt } of commands.values()) {
        if (count === limit) return count
        if (rankOf(state) < finalRank || updatedAt >= before) continue
        commands.delete(messageId)
        count++
      }
    }
    return count
  }

  remove(deviceId: DeviceId): void {
    this.#all.delete(deviceId)
    this.#open.delete(deviceId)
  }
}

const commandsOf = (map: Map<DeviceId, Commands>, deviceId: DeviceId): Commands => {
  const known = map.get(deviceId)
  if (known !== undefined) return known
  const commands: Commands = new Map()
  map.set(deviceId, commands)
  return commands
}
