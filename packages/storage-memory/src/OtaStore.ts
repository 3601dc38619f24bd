/**
 * Firmware and upgrade tasks in memory.
 */
import {
  advanceUpgrade,
  type Device,
  type Firmware,
  type FirmwareDetail,
  holdsNewcomers,
  isOngoing,
  isPushed,
  isStagePassed,
  isTaskAborted,
  isUpgradeFinal,
  type NewTask,
  OtaStore,
  type OtaTask,
  type RecordCounts,
  type RecordStatus,
  stageSize,
  type TaskScope,
  verifiable,
  withCounts
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { dueAt, OtaTables } from "./OtaTables.ts"
import { matchingDevices, paginate, Tables } from "./Tables.ts"

const noCounts: RecordCounts = { pending: 0, upgrading: 0, succeeded: 0, failed: 0, cancelled: 0 }

/** The order of two different texts by their characters: `<` goes by halves of those beyond U+FFFF. */
const byCharacters = (a: string, b: string): number => {
  const [left, right] = [[...a], [...b]]
  const place = left.findIndex((character, i) => character !== right[i])
  return place < 0 ? -1 : left[place]!.codePointAt(0)! - (right[place]?.codePointAt(0) ?? -1)
}

const newRecord = { status: "pending", step: 0, failures: 0, reason: "", revision: 0 } as const

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { connections, devices, moduleVersions: versions, nextId, onProductRemoved, products } = tables
  const ota = new OtaTables(devices)
  const { firmwares, signingKeys, tasks } = ota

  onProductRemoved.push((productKey) => {
    signingKeys.delete(productKey)
    for (const firmware of firmwares.values()) {
      if (firmware.productKey === productKey) ota.removeFirmware(firmware.firmwareId)
    }
  })

  const detail = (firmware: Firmware): FirmwareDetail => ({
    firmware,
    productName: products.get(firmware.productKey)?.name ?? "",
    ongoing: [...tasks.values()].some((task) => task.firmwareId === firmware.firmwareId && isOngoing(task))
  })

  /** Whether one of its tasks, or of their records, has not ended. */
  const isOpen = ({ firmwareId }: Firmware): boolean =>
    [...tasks.values()].some((task) =>
      task.firmwareId === firmwareId &&
      (isOngoing(task) || ota.recordsOfTask(task.taskId).some(({ status }) => !isUpgradeFinal(status)))
    )

  const findFirmware = (projectId: string, firmwareId: number) => {
    const firmware = firmwares.get(firmwareId)
    return firmware?.projectId === projectId ? firmware : undefined
  }

  const candidates = (task: NewTask, scope: TaskScope): ReadonlyArray<Device> => {
    const all = scope._tag === "Named"
      ? scope.deviceIds.flatMap((deviceId) => devices.get(deviceId) ?? [])
      : matchingDevices(tables, task.projectId, scope.filter ?? {}).filter(({ deviceId, productKey }) =>
        productKey === task.productKey && ota.unfinished(deviceId, task.module).length === 0
      )
    return all.filter(({ deviceId }) => versions.get(deviceId)?.[task.module] !== task.version)
      .toSorted((a, b) => a.id - b.id)
  }

  const insertTask = (draft: NewTask): OtaTask => {
    const { kind, ...fields } = draft
    const task = { ...fields, taskId: nextId(), counts: noCounts }
    const inserted = kind === "verify"
      ? { ...task, kind, status: "verifying" as const }
      : withCounts({ ...task, kind, status: "pending" }, noCounts)
    tasks.set(inserted.taskId, inserted)
    return inserted
  }

  const openStage = (taskId: number, stage: number, firstDue: number): OtaTask | undefined => {
    const before = tasks.get(taskId)
    if (before?.kind !== "upgrade" || !isOngoing(before) || before.stage !== stage - 1) return undefined
    const task: OtaTask = { ...before, stage, updatedAt: firstDue }
    tasks.set(taskId, task)
    ota.recordsOfTask(taskId).slice(0, stageSize(task, stage))
      .filter(({ isHeld, status }) => status === "pending" && isHeld)
      .forEach((held, place) => {
        const record = { ...held, isHeld: false, revision: held.revision + 1 }
        ota.keep(isPushed(task, record) ? { ...record, dueAt: dueAt(task, firstDue, place) } : record)
      })
    return task
  }

  const hasPassed = (task: OtaTask): boolean => {
    if (!isStagePassed(task)) return false
    const open = ota.recordsOfTask(task.taskId).filter(({ isHeld }) => !isHeld)
    const succeeded = open.filter(({ status }) => status === "succeeded").length
    return isStagePassed(task, { devices: open.length, succeeded })
  }

  const endTask = (
    taskId: number,
    to: "passed" | "failed" | "cancelled",
    cancelled: ReadonlyArray<RecordStatus>,
    at: number
  ): boolean => {
    const task = tasks.get(taskId)
    if (task === undefined || !isOngoing(task)) return false
    if (task.kind === "verify") {
      tasks.set(taskId, { ...task, status: to, updatedAt: at })
      firmwares.set(task.firmwareId, { ...firmwares.get(task.firmwareId)!, status: to, updatedAt: at })
    } else if (to === "cancelled") tasks.set(taskId, { ...task, status: to, updatedAt: at })
    else return false
    for (const record of ota.recordsOfTask(taskId)) {
      if (!cancelled.includes(record.status)) continue
      ota.change(record, advanceUpgrade(record, task, { _tag: "Cancelled", at, whole: false }))
    }
    return true
  }

  return OtaStore.of({
    signingKey: (projectId, productKey) =>
      Effect.sync(() =>
        products.get(productKey)?.projectId === projectId
          ? Option.fromUndefinedOr(signingKeys.get(productKey))
          : Option.none()
      ),
    setSigningKey: (projectId, key) =>
      Effect.sync(() => {
        if (products.get(key.productKey)?.projectId !== projectId) return false
        signingKeys.set(key.productKey, key)
        return true
      }),
    removeSigningKey: (projectId, productKey) =>
      Effect.sync(() => products.get(productKey)?.projectId === projectId && signingKeys.delete(productKey)),
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
        if (isOpen(firmware)) return "ongoing"
        ota.removeFirmware(firmwareId)
        return "removed"
      }),
    upgradingFrom: (projectId, part) =>
      Effect.sync(() =>
        Option.fromUndefinedOr(
          [...firmwares.values()].find((firmware) =>
            firmware.projectId === projectId && firmware.ossPath.includes(part) && isOpen(firmware)
          )
        )
      ),
    createTask: (draft, scope, firstDue) =>
      Effect.sync(() => {
        if (scope._tag === "Named") {
          const unknown = scope.deviceIds.filter((deviceId) => devices.get(deviceId)?.productKey !== draft.productKey)
          if (unknown.length > 0) return { _tag: "Unknown", deviceIds: unknown }
          const busy = scope.deviceIds.find((deviceId) => ota.unfinished(deviceId, draft.module).length > 0)
          if (busy !== undefined) return { _tag: "Busy", deviceId: busy }
        }
        const firmware = firmwares.get(draft.firmwareId)
        if (firmware === undefined) return { _tag: "NoFirmware" }
        if (draft.kind === "verify") {
          if (!verifiable.includes(firmware.status)) return { _tag: "NotVerifiable" }
          firmwares.set(draft.firmwareId, { ...firmware, status: "verifying", updatedAt: draft.createdAt })
        }
        const chosen = candidates(draft, scope)
        const task = insertTask(draft)
        const { taskId } = task
        const open = stageSize({ ...task, counts: { ...noCounts, pending: chosen.length } }, task.stage)
        chosen.forEach(({ deviceId, deviceName }, place) => {
          const held = { isConfirmed: false, isHeld: place >= open }
          ota.add({
            ...newRecord,
            ...held,
            taskId,
            deviceId,
            deviceName,
            dueAt: isPushed(task, held) ? dueAt(task, firstDue, place) : null,
            updatedAt: draft.createdAt
          })
        })
        return { _tag: "Created", task: tasks.get(taskId)!, deviceIds: chosen.map(({ deviceId }) => deviceId) }
      }),
    dynamicTasks: (productKeys) =>
      Effect.sync(() =>
        [...tasks.values()].filter((task) => task.isDynamic && isOngoing(task) && productKeys.includes(task.productKey))
      ),
    join: (taskId, joining, at) =>
      Effect.sync(() => {
        const task = tasks.get(taskId)
        if (task === undefined || !isOngoing(task)) return
        const held = { isConfirmed: false, isHeld: holdsNewcomers(task) }
        for (const { deviceId, deviceName } of joining) {
          const isIn = ota.record(taskId, deviceId) !== undefined || ota.unfinished(deviceId, task.module).length > 0
          if (isIn || !devices.has(deviceId)) continue
          ota.add({
            ...newRecord,
            ...held,
            taskId,
            deviceId,
            deviceName,
            dueAt: isPushed(task, held) ? at : null,
            updatedAt: at
          })
        }
      }),
    task: (projectId, taskId) =>
      Effect.sync(() =>
        Option.filter(Option.fromUndefinedOr(tasks.get(taskId)), (task) => task.projectId === projectId)
      ),
    verifyTask: (firmwareId) =>
      Effect.sync(() =>
        Option.fromUndefinedOr(
          [...tasks.values()].filter((task) => task.kind === "verify")
            .findLast((task) => task.firmwareId === firmwareId)
        )
      ),
    listTasks: (projectId, filter, page) =>
      Effect.sync(() =>
        paginate(
          [...tasks.values()].filter((task) => task.kind === "upgrade").filter((task) =>
            task.projectId === projectId && task.firmwareId === filter.firmwareId &&
            (filter.status === undefined || task.status === filter.status) &&
            (filter.taskId === undefined || task.taskId === filter.taskId)
          ),
          page
        )
      ),
    underWay: (projectId, limit) =>
      Effect.sync(() => {
        const all = [...tasks.values()].filter((task) => task.kind === "upgrade").filter((task) =>
          task.projectId === projectId && isOngoing(task)
        )
        return { items: all.toReversed().slice(0, limit), total: all.length }
      }),
    records: (taskId, filter, { page, pageSize }) =>
      Effect.sync(() => {
        const all = ota.recordsOfTask(taskId)
          .filter(({ deviceId, reason, status }) =>
            (filter.status === undefined || status === filter.status) &&
            (filter.failure === undefined || status === "failed" && reason === filter.failure) &&
            (filter.rejected === undefined || devices.get(deviceId)?.status !== filter.rejected)
          )
          .toReversed()
        return {
          total: all.length,
          items: all.slice((page - 1) * pageSize, page * pageSize).map((record) => ({
            record,
            deviceStatus: devices.get(record.deviceId)?.status ?? "offline",
            currentVersion: versions.get(record.deviceId)?.[tasks.get(taskId)!.module] ?? ""
          }))
        }
      }),
    countsBefore: (taskId, times) => Effect.sync(() => times.map((time) => ota.countsBefore(taskId, time) ?? noCounts)),
    failures: (taskId, limit) =>
      Effect.sync(() => {
        const devices = new Map<string, number>()
        for (const { reason, status } of ota.recordsOfTask(taskId)) {
          if (status === "failed") devices.set(reason, (devices.get(reason) ?? 0) + 1)
        }
        return [...devices].map(([reason, devices]) => ({ reason, devices }))
          .toSorted((a, b) => b.devices - a.devices || byCharacters(a.reason, b.reason))
          .slice(0, limit)
      }),
    record: (deviceId, taskId) =>
      Effect.sync(() => {
        const record = taskId === undefined ? ota.recordsOfDevice(deviceId).at(-1) : ota.record(taskId, deviceId)
        return Option.map(Option.fromUndefinedOr(record), (found) => ota.assign(found))
      }),
    newest: (deviceId, module) =>
      Effect.sync(() => {
        const newest = ota.recordsOfDevice(deviceId).findLast(({ taskId }) => ota.tasks.get(taskId)!.module === module)
        return Option.map(Option.fromUndefinedOr(newest), (found) => ota.assign(found))
      }),
    unfinished: (deviceIds, module) =>
      Effect.sync(() =>
        deviceIds.flatMap((deviceId) => ota.unfinished(deviceId, module).map((record) => ota.assign(record)))
      ),
    orphaned: (limit) => Effect.sync(() => ota.orphaned().slice(0, limit).map((record) => ota.assign(record))),
    save: (changes) =>
      Effect.sync(() => {
        const changed = new Map<number, OtaTask>()
        const saved = changes.map(({ after, before }) => {
          const stored = ota.record(before.taskId, before.deviceId)
          if (stored === undefined || stored.revision !== before.revision) return false
          if (after.status === "pending" && !isOngoing(tasks.get(after.taskId)!)) return false
          if (after.status === stored.status) ota.keep(after)
          else changed.set(after.taskId, ota.change(stored, after))
          return true
        })
        for (const [taskId, task] of changed) {
          if (isTaskAborted(task)) {
            endTask(taskId, "cancelled", ["pending"], task.updatedAt)
            changed.set(taskId, tasks.get(taskId)!)
          }
          for (let next: OtaTask | undefined = task; next !== undefined && hasPassed(next);) {
            next = openStage(taskId, next.stage + 1, next.updatedAt)
            if (next !== undefined) changed.set(taskId, next)
          }
        }
        return { saved, tasks: [...changed.values()] }
      }),
    endTask: (taskId, to, cancelled, at) => Effect.sync(() => endTask(taskId, to, cancelled, at)),
    removeTask: (taskId) =>
      Effect.sync(() => {
        const task = tasks.get(taskId)
        if (task === undefined || isOngoing(task)) return false
        if (ota.recordsOfTask(taskId).some(({ status }) => !isUpgradeFinal(status))) return false
        ota.removeTask(taskId)
        return true
      }),
    pruneTasks: ({ before, limit }) =>
      Effect.sync(() => {
        const old = [...tasks.values()].filter((task) =>
          task.kind === "upgrade" && !isOngoing(task) && task.updatedAt < before &&
          ota.recordsOfTask(task.taskId).every(({ status }) => isUpgradeFinal(status))
        ).slice(0, limit)
        for (const { taskId } of old) ota.removeTask(taskId)
        return old.length
      }),
    confirmTask: (taskId, firstDue) =>
      Effect.sync(() => {
        const task = tasks.get(taskId)
        if (task === undefined || task.isAppConfirmed) return false
        tasks.set(taskId, { ...task, isAppConfirmed: true, updatedAt: firstDue })
        if (task.upgradePolicy === "push") {
          ota.recordsOfTask(taskId).filter(({ isConfirmed, isHeld, status }) =>
            status === "pending" && !isHeld && !isConfirmed
          ).forEach((record, place) =>
            ota.keep({ ...record, dueAt: dueAt(task, firstDue, place), revision: record.revision + 1 })
          )
        }
        return true
      }),
    openStage: (taskId, stage, firstDue) =>
      Effect.sync(() => Option.fromUndefinedOr(openStage(taskId, stage, firstDue))),
    claimDue: ({ again, limit, now }) =>
      Effect.sync(() => {
        const claimed = ota.dueAt(now).slice(0, limit)
        for (const record of claimed) ota.keep({ ...record, dueAt: again })
        return claimed.map((record) => ({
          ...ota.assign(record),
          isConnected: connections.has(record.deviceId)
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
