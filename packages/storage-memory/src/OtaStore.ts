/**
 * Firmware and upgrade tasks in memory.
 */
import {
  type Assignment,
  type Device,
  type DeviceId,
  type Firmware,
  type FirmwareDetail,
  type NewTask,
  OtaStore,
  type RecordCounts,
  rolloutDelay,
  type TaskScope,
  taskStatus,
  type UpgradeRecord,
  type UpgradeTask,
  verifiable
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { paginate, Tables } from "./Tables.ts"

/** Which member of the counts a status is counted in. */
const counted = [undefined, "pending", "upgrading", "succeeded", "failed", "cancelled"] as const

const noCounts: RecordCounts = { pending: 0, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 }

const make = Effect.gen(function*() {
  const { devices, nextId, onProductRemoved, products } = yield* Tables
  const firmwares = new Map<number, Firmware>()
  const tasks = new Map<number, UpgradeTask>()
  /** By task, then by device, the oldest device first. */
  const records = new Map<number, Map<DeviceId, UpgradeRecord>>()
  /** By device, the tasks that it is in, oldest first. */
  const tasksOf = new Map<DeviceId, Array<number>>()
  const versions = new Map<DeviceId, Record<string, string>>()

  const detail = (firmware: Firmware): FirmwareDetail => ({
    firmware,
    productName: products.get(firmware.productKey)?.name ?? "",
    ongoing: [...tasks.values()].some(({ firmwareId, status }) => firmwareId === firmware.firmwareId && status < 2)
  })

  const removeFirmware = (firmwareId: number): void => {
    firmwares.delete(firmwareId)
    for (const { taskId } of [...tasks.values()].filter((task) => task.firmwareId === firmwareId)) {
      for (const deviceId of records.get(taskId)!.keys()) {
        tasksOf.set(deviceId, tasksOf.get(deviceId)!.filter((other) => other !== taskId))
        due.delete(`${taskId} ${deviceId}`)
      }
      records.delete(taskId)
      tasks.delete(taskId)
    }
  }

  // A product takes its firmware with it.
  onProductRemoved.push((productKey) => {
    for (const firmware of firmwares.values()) {
      if (firmware.productKey === productKey) removeFirmware(firmware.firmwareId)
    }
  })

  const findFirmware = (projectId: string, firmwareId: number) => {
    const firmware = firmwares.get(firmwareId)
    return firmware?.projectId === projectId ? firmware : undefined
  }

  const assign = (record: UpgradeRecord): Assignment => {
    const task = tasks.get(record.taskId)!
    return { record, task, firmware: firmwares.get(task.firmwareId)! }
  }

  const recordsOf = (deviceId: DeviceId): ReadonlyArray<UpgradeRecord> =>
    (tasksOf.get(deviceId) ?? []).map((taskId) => records.get(taskId)!.get(deviceId)!)

  const isBusy = (deviceId: DeviceId, module: string): boolean =>
    recordsOf(deviceId).some(({ status, taskId }) => status < 3 && tasks.get(taskId)!.module === module)

  /** The records that something is due for. */
  const due = new Map<string, UpgradeRecord>()

  const keep = (record: UpgradeRecord): void => {
    records.get(record.taskId)!.set(record.deviceId, record)
    const key = `${record.taskId} ${record.deviceId}`
    if (record.dueAt === null) due.delete(key)
    else due.set(key, record)
  }

  const put = (record: UpgradeRecord, before: UpgradeRecord["status"] | undefined): UpgradeTask => {
    const task = tasks.get(record.taskId)!
    keep(record)
    const counts: Record<keyof RecordCounts, number> = { ...task.counts }
    if (before !== undefined) counts[counted[before]!]--
    counts[counted[record.status]!]++
    const status = task.kind === "verify" ? task.status : taskStatus(task.status, counts)
    const changed = { ...task, counts, status, updatedAt: record.updatedAt }
    tasks.set(task.taskId, changed)
    return changed
  }

  const candidates = (task: NewTask, scope: TaskScope): ReadonlyArray<Device> => {
    const all = scope._tag === "Named"
      ? scope.deviceIds.flatMap((deviceId) => devices.get(deviceId) ?? [])
      : [...devices.values()].filter(({ deviceId, productKey }) =>
        productKey === task.productKey && !isBusy(deviceId, task.module)
      )
    return all.filter(({ deviceId }) => versions.get(deviceId)?.[task.module] !== task.version)
      .toSorted((a, b) => a.id - b.id)
  }

  const dueAt = ({ maximumPerMinute, taskId }: UpgradeTask, firstDue: number, place: number): number =>
    firstDue + Math.floor(rolloutDelay(taskId, place, maximumPerMinute))

  return OtaStore.of({
    insertFirmware: (draft) =>
      Effect.sync(() => {
        const { module, productKey, projectId, version } = draft
        if (products.get(productKey)?.projectId !== projectId) return "no-product"
        const isTaken = [...firmwares.values()].some((known) =>
          known.productKey === productKey && known.module === module && known.version === version
        )
        if (isTaken) return "taken"
        const firmware = { ...draft, firmwareId: nextId() }
        firmwares.set(firmware.firmwareId, firmware)
        return firmware
      }),
    firmware: (projectId, firmwareId) =>
      Effect.sync(() => Option.map(Option.fromUndefinedOr(findFirmware(projectId, firmwareId)), detail)),
    listFirmwares: (projectId, { name, productKey }, page) =>
      Effect.sync(() => {
        const { items, total } = paginate(
          [...firmwares.values()].filter((firmware) =>
            firmware.projectId === projectId && (productKey === undefined || firmware.productKey === productKey) &&
            (name === undefined || firmware.name.includes(name))
          ),
          page
        )
        return { items: items.map(detail), total }
      }),
    removeFirmware: (projectId, firmwareId) =>
      Effect.sync(() => {
        const firmware = findFirmware(projectId, firmwareId)
        if (firmware === undefined) return "not-found"
        if (detail(firmware).ongoing) return "ongoing"
        removeFirmware(firmwareId)
        return "removed"
      }),
    createTask: (draft, scope, firstDue) =>
      Effect.sync(() => {
        if (scope._tag === "Named") {
          const unknown = scope.deviceIds.filter((deviceId) => devices.get(deviceId)?.productKey !== draft.productKey)
          if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
          const busy = scope.deviceIds.find((deviceId) => isBusy(deviceId, draft.module))
          if (busy !== undefined) return { _tag: "Busy", deviceId: busy }
        }
        const firmware = firmwares.get(draft.firmwareId)
        if (firmware === undefined) return { _tag: "NoFirmware" }
        if (draft.kind === "verify") {
          if (!verifiable.includes(firmware.status)) return { _tag: "NotVerifiable" }
          firmwares.set(draft.firmwareId, { ...firmware, status: 1, updatedAt: draft.createdAt })
        }
        const taskId = nextId()
        const status = draft.kind === "verify" ? 1 : taskStatus(0, noCounts)
        const task = { ...draft, taskId, status, counts: noCounts }
        tasks.set(taskId, task)
        records.set(taskId, new Map())
        const isDue = draft.upgradePolicy === 1 && (!draft.needAppConfirm || draft.isAppConfirmed)
        const chosen = candidates(draft, scope)
        chosen.forEach(({ deviceId, deviceName }, place) => {
          tasksOf.set(deviceId, [...tasksOf.get(deviceId) ?? [], taskId])
          put({
            taskId,
            deviceId,
            deviceName,
            status: 1,
            step: 0,
            isConfirmed: false,
            failures: 0,
            reason: "",
            dueAt: isDue ? dueAt(task, firstDue, place) : null,
            updatedAt: draft.createdAt,
            revision: 0
          }, undefined)
        })
        return { _tag: "Created", task: tasks.get(taskId)!, deviceIds: chosen.map(({ deviceId }) => deviceId) }
      }),
    task: (projectId, taskId) =>
      Effect.sync(() =>
        Option.filter(Option.fromUndefinedOr(tasks.get(taskId)), (task) => task.projectId === projectId)
      ),
    verifyTask: (firmwareId) =>
      Effect.sync(() =>
        Option.fromUndefinedOr(
          [...tasks.values()].findLast((task) => task.firmwareId === firmwareId && task.kind === "verify")
        )
      ),
    listTasks: (projectId, filter, page) =>
      Effect.sync(() =>
        paginate(
          [...tasks.values()].filter((task) =>
            task.projectId === projectId && task.firmwareId === filter.firmwareId && task.kind === "upgrade" &&
            (filter.status === undefined || task.status === filter.status) &&
            (filter.taskId === undefined || task.taskId === filter.taskId)
          ),
          page
        )
      ),
    records: (taskId, rejected, { page, pageSize }) =>
      Effect.sync(() => {
        const all = [...records.get(taskId)?.values() ?? []]
          .filter(({ deviceId }) => rejected === undefined || devices.get(deviceId)?.status !== rejected)
          .toReversed()
        return {
          total: all.length,
          items: all.slice((page - 1) * pageSize, page * pageSize).map((record) => {
            const device = devices.get(record.deviceId)
            return {
              record,
              deviceStatus: device?.status ?? "offline",
              currentVersion: versions.get(record.deviceId)?.[tasks.get(taskId)!.module] ?? ""
            }
          })
        }
      }),
    record: (deviceId, taskId) =>
      Effect.sync(() =>
        Option.map(
          Option.fromUndefinedOr(
            recordsOf(deviceId).findLast((record) => taskId === undefined || record.taskId === taskId)
          ),
          assign
        )
      ),
    unfinished: (deviceIds, module) =>
      Effect.sync(() =>
        deviceIds.flatMap((deviceId) =>
          recordsOf(deviceId).filter(({ status, taskId }) =>
            status < 3 && (module === undefined || tasks.get(taskId)!.module === module)
          ).map(assign)
        )
      ),
    save: (changes) =>
      Effect.sync(() => {
        const changed = new Map<number, UpgradeTask>()
        const saved = changes.map(({ after, before }) => {
          const stored = records.get(before.taskId)?.get(before.deviceId)
          if (stored === undefined || stored.revision !== before.revision) return false
          if (after.status === 1 && tasks.get(after.taskId)!.status > 1) return false
          changed.set(after.taskId, put(after, stored.status))
          return true
        })
        return { saved, tasks: [...changed.values()] }
      }),
    endTask: (taskId, to, cancelled, at) =>
      Effect.sync(() => {
        const task = tasks.get(taskId)
        if (task === undefined || task.status > 1) return false
        tasks.set(taskId, { ...task, status: to, updatedAt: at })
        if (task.kind === "verify") {
          firmwares.set(task.firmwareId, { ...firmwares.get(task.firmwareId)!, status: to, updatedAt: at })
        }
        for (const record of records.get(taskId)!.values()) {
          if (!(cancelled as ReadonlyArray<number>).includes(record.status)) continue
          const { revision, status } = record
          put(
            { ...record, status: 5, dueAt: null, reason: "cancelled", updatedAt: at, revision: revision + 1 },
            status
          )
        }
        tasks.set(taskId, { ...tasks.get(taskId)!, status: to })
        return true
      }),
    confirmTask: (taskId, firstDue) =>
      Effect.sync(() => {
        const task = tasks.get(taskId)
        if (task === undefined || task.isAppConfirmed) return false
        tasks.set(taskId, { ...task, isAppConfirmed: true, updatedAt: firstDue })
        if (task.upgradePolicy === 1) {
          const pending = [...records.get(taskId)!.values()].filter(({ status }) => status === 1)
          pending.forEach((record, place) =>
            keep({ ...record, dueAt: dueAt(task, firstDue, place), revision: record.revision + 1 })
          )
        }
        return true
      }),
    claimDue: ({ again, limit, now }) =>
      Effect.sync(() => {
        const claimed = [...due.values()].filter((record) => record.dueAt! <= now)
          .toSorted((a, b) => a.dueAt! - b.dueAt!).slice(0, limit)
        for (const record of claimed) keep({ ...record, dueAt: again })
        return claimed.map((record) => ({
          ...assign(record),
          isOnline: devices.get(record.deviceId)?.status === "online"
        }))
      }),
    reportVersions: (reports) =>
      Effect.sync(() => {
        for (const { deviceId, module, version } of reports) {
          const device = devices.get(deviceId)
          if (device === undefined) continue
          versions.set(deviceId, { ...versions.get(deviceId), [module]: version })
          if (module === "default") devices.set(deviceId, { ...device, firmwareVersion: version })
        }
      }),
    versions: (deviceId) => Effect.sync(() => versions.get(deviceId) ?? {})
  })
})

export const layer: Layer.Layer<OtaStore, never, Tables> = Layer.effect(OtaStore, make)
