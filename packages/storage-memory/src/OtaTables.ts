/**
 * The tables of `OtaStore` in memory, and what must hold between them: the counts
 * and the status of a task follow from its records, the index of due records from
 * their times.
 */
import {
  type Assignment,
  type Device,
  type DeviceId,
  type Firmware,
  isUpgradeFinal,
  type OtaTask,
  type ProductKey,
  progressResolution,
  type RecordCounts,
  type RecordStatus,
  rolloutDelay,
  type SigningKey,
  timeZoneTag,
  type UpgradeRecord,
  withCounts
} from "@device-cloud/core"

export class OtaTables {
  readonly firmwares = new Map<number, Firmware>()
  readonly signingKeys = new Map<ProductKey, SigningKey>()
  readonly tasks = new Map<number, OtaTask>()
  /** By task, then by device, the oldest device first. */
  readonly #records = new Map<number, Map<DeviceId, UpgradeRecord>>()
  /** The tasks of each device, oldest first. */
  readonly #tasksOf = new Map<DeviceId, Array<number>>()
  /** The counts of each task as they were at the end of ticks, the oldest first. A tick: `progressResolution`. */
  readonly #progress = new Map<number, Array<{ readonly tick: number; counts: RecordCounts }>>()
  /** The records that are due some time. */
  readonly #due = new Map<string, UpgradeRecord>()
  /** No record is due before, Unix milliseconds. */
  #soonest = Number.POSITIVE_INFINITY

  readonly #devices: ReadonlyMap<DeviceId, Device>

  constructor(devices: ReadonlyMap<DeviceId, Device>) {
    this.#devices = devices
  }

  /** The records of a task, the oldest device first. */
  recordsOfTask(taskId: number): ReadonlyArray<UpgradeRecord> {
    return [...this.#records.get(taskId)?.values() ?? []]
  }

  /** The records of a device, the oldest task first. */
  recordsOfDevice(deviceId: DeviceId): ReadonlyArray<UpgradeRecord> {
    return (this.#tasksOf.get(deviceId) ?? []).map((taskId) => this.record(taskId, deviceId)!)
  }

  record(taskId: number, deviceId: DeviceId): UpgradeRecord | undefined {
    return this.#records.get(taskId)?.get(deviceId)
  }

  /** The record with its task and firmware. */
  assign(record: UpgradeRecord): Assignment {
    const task = this.tasks.get(record.taskId)!
    const timeZone = task.startWindow === null ? "" : this.#devices.get(record.deviceId)?.tags[timeZoneTag] ?? ""
    return { record, task, firmware: this.firmwares.get(task.firmwareId)!, timeZone }
  }

  /** The records of a device that have not ended; with `module`, those for this module. */
  unfinished(deviceId: DeviceId, module?: string): ReadonlyArray<UpgradeRecord> {
    return this.recordsOfDevice(deviceId).filter(({ status, taskId }) =>
      !isUpgradeFinal(status) && (module === undefined || this.tasks.get(taskId)!.module === module)
    )
  }

  /** Records that have not ended, of devices that are gone. */
  orphaned(): ReadonlyArray<UpgradeRecord> {
    const gone = [...this.#tasksOf.keys()].filter((deviceId) => !this.#devices.has(deviceId))
    return gone.flatMap((deviceId) => this.unfinished(deviceId))
  }

  /** Adds a record, which is counted from now on. */
  add(record: UpgradeRecord): void {
    const { deviceId, taskId } = record
    this.#tasksOf.set(deviceId, [...this.#tasksOf.get(deviceId) ?? [], taskId])
    this.keep(record)
    this.#count(record, undefined)
  }

  /** Puts the record in the place of `before`. Returns its task, with the counts and status that follow. */
  change(before: UpgradeRecord, after: UpgradeRecord): OtaTask {
    this.keep(after)
    return this.#count(after, before.status)
  }

  /** Stores a record without counting it: its status is as before. */
  keep(record: UpgradeRecord): void {
    const { deviceId, dueAt, taskId } = record
    const ofTask = this.#records.get(taskId)
    if (ofTask === undefined) this.#records.set(taskId, new Map([[deviceId, record]]))
    else ofTask.set(deviceId, record)
    const key = `${taskId} ${deviceId}`
    if (dueAt === null) this.#due.delete(key)
    else {
      this.#due.set(key, record)
      this.#soonest = Math.min(this.#soonest, dueAt)
    }
  }

  #count(record: UpgradeRecord, before: RecordStatus | undefined): OtaTask {
    const task = this.tasks.get(record.taskId)!
    const counts: Record<RecordStatus, number> = { ...task.counts }
    if (before !== undefined) counts[before]--
    counts[record.status]++
    const changed = { ...withCounts(task, counts), updatedAt: record.updatedAt }
    this.tasks.set(task.taskId, changed)
    this.#note(changed)
    return changed
  }

  #note({ counts, taskId, updatedAt }: OtaTask): void {
    const noted = this.#progress.get(taskId)
    const tick = Math.floor(updatedAt / progressResolution)
    const last = noted?.at(-1)
    if (noted === undefined) this.#progress.set(taskId, [{ tick, counts }])
    else if (last!.tick >= tick) last!.counts = counts
    else noted.push({ tick, counts })
  }

  /** The counts that the task had before `time`, Unix milliseconds; none before it had a device. */
  countsBefore(taskId: number, time: number): RecordCounts | undefined {
    return this.#progress.get(taskId)?.findLast(({ tick }) => tick * progressResolution < time)?.counts
  }

  /** The records that are due at `now`, the longest due first. */
  dueAt(now: number): ReadonlyArray<UpgradeRecord> {
    if (now < this.#soonest) return []
    const due: Array<UpgradeRecord> = []
    this.#soonest = Number.POSITIVE_INFINITY
    for (const record of this.#due.values()) {
      this.#soonest = Math.min(this.#soonest, record.dueAt!)
      if (record.dueAt! <= now) due.push(record)
    }
    return due.toSorted((a, b) => a.dueAt! - b.dueAt!)
  }

  removeFirmware(firmwareId: number): void {
    this.firmwares.delete(firmwareId)
    for (const { taskId } of [...this.tasks.values()].filter((task) => task.firmwareId === firmwareId)) {
      this.removeTask(taskId)
    }
  }

  removeTask(taskId: number): void {
    for (const { deviceId } of this.recordsOfTask(taskId)) {
      const others = this.#tasksOf.get(deviceId)!.filter((other) => other !== taskId)
      if (others.length === 0) this.#tasksOf.delete(deviceId)
      else this.#tasksOf.set(deviceId, others)
      this.#due.delete(`${taskId} ${deviceId}`)
    }
    this.#records.delete(taskId)
    this.#progress.delete(taskId)
    this.tasks.delete(taskId)
  }
}

/** When the cloud tells the device at `place` of a task, Unix milliseconds. */
export const dueAt = (
  { maximumPerMinute, taskId }: Pick<OtaTask, "maximumPerMinute" | "taskId">,
  firstDue: number,
  place: number
): number => firstDue + Math.floor(rolloutDelay(taskId, place, maximumPerMinute))
