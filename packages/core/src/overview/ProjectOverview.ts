/**
 * How a project is now: what it has, what is under way, and what needs attention.
 */
import { Cache, Clock, Context, Effect, Exit, Layer, Option } from "effect"
import { Troubles } from "../activity/Troubles.ts"
import type { Trouble, TroubleKind } from "../activity/TroubleStore.ts"
import { BulkCommandStore } from "../bulk/BulkCommandStore.ts"
import { DeviceId } from "../device/Device.ts"
import { type DeviceCounts, DeviceStore } from "../device/DeviceStore.ts"
import { JobStore } from "../job/JobStore.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { OtaStore } from "../ota/task/OtaStore.ts"
import type { UpgradeTask } from "../ota/task/UpgradeTask.ts"
import { AccessKeyStore } from "../project/AccessKeyStore.ts"
import type { ProjectId, ProjectNotFound } from "../project/Project.ts"
import { Quotas } from "../project/Quotas.ts"
import { SceneId } from "../scene/definition/SceneId.ts"
import { SceneStore } from "../scene/definition/SceneStore.ts"
import { ExecutionStore } from "../scene/execution/ExecutionStore.ts"
import { SubscriptionStore } from "../subscription/SubscriptionStore.ts"
import * as Attention from "./Attention.ts"

export interface Overview {
  /** When this was true, Unix milliseconds: at most five seconds ago. */
  readonly at: number
  readonly devices: DeviceCounts
  readonly products: number
  /** Upgrade tasks that have not ended: the newest 20, and how many there are. */
  readonly upgrades: { readonly total: number; readonly tasks: ReadonlyArray<UpgradeTask> }
  /** Jobs that are in progress. */
  readonly jobs: number
  /** Bulk commands that have devices to ask. */
  readonly bulkCommands: number
  readonly scenes: {
    readonly enabled: number
    /** Executions that have not ended; at most 1,000 are counted. */
    readonly executions: number
  }
  /** Of each kind at most 20. */
  readonly attention: ReadonlyArray<Attention.Attention>
}

export class ProjectOverview extends Context.Service<ProjectOverview, {
  /** Returns how the project is. Calls within five seconds share one look at the stores. */
  readonly get: (projectId: ProjectId) => Effect.Effect<Overview, ProjectNotFound | StoreError>
}>()("@device-cloud/core/overview/ProjectOverview") {
  static readonly layer: Layer.Layer<
    ProjectOverview,
    never,
    | Troubles
    | Quotas
    | AccessKeyStore
    | BulkCommandStore
    | DeviceStore
    | ExecutionStore
    | JobStore
    | OtaStore
    | SceneStore
    | SubscriptionStore
  > = Layer.effect(ProjectOverview, Effect.suspend(() => make))
}

const timeToLive = "5 seconds"
/** Projects whose overview is kept. */
const capacity = 1000
/** Executions that are counted. */
const maxExecutions = 1000
/** Tasks under way that are looked at, access keys, and troubles of each kind. */
const maxLookedAt = 1000

const one = { page: 1, pageSize: 1 }

const make = Effect.gen(function*() {
  const troubles = yield* Troubles
  const quotas = yield* Quotas
  const accessKeys = yield* AccessKeyStore
  const bulkCommands = yield* BulkCommandStore
  const devices = yield* DeviceStore
  const executions = yield* ExecutionStore
  const jobs = yield* JobStore
  const ota = yield* OtaStore
  const scenes = yield* SceneStore
  const subscriptions = yield* SubscriptionStore

  /** The worst troubles of the kind whose device is there. Reads no more devices than it needs. */
  const troubledDevices = Effect.fnUntraced(function*(
    projectId: ProjectId,
    all: ReadonlyArray<Trouble>,
    kind: TroubleKind
  ) {
    const items: Array<Attention.Attention> = []
    for (const trouble of all) {
      if (items.length === Attention.maxAttention) break
      if (trouble.kind !== kind) continue
      const found = yield* devices.get(projectId, { deviceId: DeviceId.make(trouble.subject) })
      if (Option.isSome(found)) items.push(Attention.troubledDevice(trouble, found.value.device))
    }
    return items
  })

  /** What has gone wrong with devices and scenes that are there. */
  const troubled = Effect.fnUntraced(function*(projectId: ProjectId) {
    const all = yield* troubles.latest(projectId, maxLookedAt)
    const sceneIds = all.flatMap(({ kind, subject }) => kind === "execution-failed" ? [SceneId.make(subject)] : [])
    const failing = sceneIds.length === 0 ? [] : yield* scenes.find(sceneIds)
    return [
      ...(yield* troubledDevices(projectId, all, "flapping")),
      ...(yield* troubledDevices(projectId, all, "refused")),
      ...Attention.troubledScenes(all, failing).slice(0, Attention.maxAttention)
    ]
  })

  const look = Effect.fnUntraced(function*(projectId: ProjectId): Effect.fn.Return<
    Overview,
    ProjectNotFound | StoreError
  > {
    const at = yield* Clock.currentTimeMillis
    const report = yield* quotas.get(projectId)
    const found = yield* Effect.all({
      devices: devices.count(projectId),
      upgrades: ota.underWay(projectId, maxLookedAt),
      jobs: jobs.countUnderWay(projectId),
      bulkCommands: bulkCommands.countUnderWay(projectId),
      enabled: Effect.map(scenes.list(projectId, { status: "enable" }, one), ({ total }) => total),
      executions: executions.countPending([projectId], maxExecutions),
      troubled: troubled(projectId),
      pushing: subscriptions.pushing(projectId),
      keys: accessKeys.list(projectId, { page: 1, pageSize: maxLookedAt })
    })
    const { items, total } = found.upgrades
    const attention = [
      found.troubled,
      ...[
        Attention.stuckUpgrades(items, at),
        Attention.failingSubscriptions(found.pushing),
        Attention.expiringKeys(found.keys.items, at),
        Attention.nearlyUsedQuotas(report)
      ].map((ofKind) => ofKind.slice(0, Attention.maxAttention))
    ].flat()
    return {
      at,
      devices: found.devices,
      products: report.used.products,
      upgrades: { total, tasks: items.slice(0, Attention.maxAttention) },
      jobs: found.jobs,
      bulkCommands: found.bulkCommands,
      scenes: { enabled: found.enabled, executions: found.executions.get(projectId) ?? 0 },
      attention
    }
  })

  const looks = yield* Cache.makeWith(look, {
    capacity,
    timeToLive: (exit) => Exit.isSuccess(exit) ? timeToLive : 0
  })

  return ProjectOverview.of({ get: (projectId) => Cache.get(looks, projectId) })
})
