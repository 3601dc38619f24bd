/**
 * Handlers of the routes that show how a project is.
 */
import {
  type ActivityPoint,
  type ActivitySeries,
  type Attention,
  Nodes,
  type NodeState,
  type Overview,
  ProjectActivity,
  ProjectOverview,
  roleIncludes,
  type StorageState
} from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { type Caller, shownAnswer } from "../middleware/Caller.ts"
import { taskRecord } from "../ota/OtaHandlers.ts"
import { snakeCase } from "../SnakeCase.ts"
import type { ActivityInfo, ActivityPointInfo, AttentionInfo, NodesInfo, OverviewInfo } from "./OverviewApi.ts"

/** Implements the group `overview`. */
export const layer = group(
  Api,
  "overview",
  Effect.fnUntraced(function*(handlers) {
    const activity = yield* ProjectActivity
    const overview = yield* ProjectOverview
    const nodes = yield* Nodes
    return handlers.handleAll({
      getOverview: () =>
        CurrentPrincipal.use((caller) => respond(overview.get(caller.projectId), overviewInfo(caller))),
      listNodes: () => respond(Effect.all({ nodes: nodes.list, storage: nodes.storage }), nodesInfo),
      getActivity: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) => respond(activity.series(projectId, query), activityInfo))
    })
  })
)

const activityInfo = ({ points, ...period }: ActivitySeries): typeof ActivityInfo.Type => ({
  ...period,
  points: points.map(pointInfo)
})

const pointInfo = ({ devicesOnline, ...point }: ActivityPoint): typeof ActivityPointInfo.Type => ({
  ...point,
  devices_online: devicesOnline
})

const overviewInfo = (caller: Caller) =>
(
  { at, attention, bulkCommands, devices, jobs, products, scenes, upgrades }: Overview
): typeof OverviewInfo.Type => ({
  at,
  devices: { total: devices.online + devices.offline + devices.unactive, ...devices },
  products,
  upgrades: {
    total: upgrades.total,
    tasks: upgrades.tasks.map((task) => ({
      ...taskRecord(task),
      product_key: task.productKey,
      module: task.module,
      version: task.version
    }))
  },
  jobs,
  bulk_commands: bulkCommands,
  scenes,
  // Only an admin reads the list of access keys.
  attention: attention.filter(({ kind }) => kind !== "access_key_expires" || roleIncludes(caller.role, "admin"))
    .map(attentionInfo(caller))
})

const attentionInfo = (caller: Caller) => (found: Attention): typeof AttentionInfo.Type => {
  const { kind } = found
  switch (kind) {
    case "device_flapping":
    case "device_refused": {
      const { at, code, count, device: { deviceId, deviceName, productKey }, since } = found
      const subject = { device_id: deviceId, product_key: productKey, device_name: deviceName }
      return { kind, subject, since, at, count, details: kind === "device_refused" ? { code } : {} }
    }
    case "upgrade_stuck": {
      const { count, since, task: { counts, firmwareId, module, productKey, taskId, version }, waitsFor } = found
      const subject = { task_id: taskId, firmware_id: firmwareId, product_key: productKey, module, version }
      const details = { waits_for: waitsFor, pending: counts.pending, upgrading: counts.upgrading }
      return { kind, subject, since, at: null, count, details }
    }
    case "scene_failing": {
      const { at, count, hasWebhook, scene: { name, sceneId }, since, status } = found
      const details = { status, has_webhook: hasWebhook }
      return { kind, subject: { scene_id: sceneId, name }, since, at, count, details }
    }
    case "subscription_failing": {
      const { count, isPaused, reason, since, subscription: { name, subscriptionId } } = found
      const details = { reason: shownAnswer(caller, reason), is_paused: isPaused }
      return { kind, subject: { subscription_id: subscriptionId, name }, since, at: null, count, details }
    }
    case "access_key_expires": {
      const { accessKey: { id, name }, expiresAt } = found
      return { kind, subject: { id, name }, since: null, at: null, count: 1, details: { expires_at: expiresAt } }
    }
    case "quota_nearly_used": {
      const { limit, quota, used } = found
      return { kind, subject: { quota: snakeCase(quota) }, since: null, at: null, count: 1, details: { used, limit } }
    }
  }
}

const statusOf = ({ isDraining, isSilent, isSteady }: NodeState) => {
  if (isSilent) return "silent"
  if (isDraining) return "draining"
  return isSteady ? "steady" : "starting"
}

const nodesInfo = (
  { nodes, storage }: { readonly nodes: ReadonlyArray<NodeState>; readonly storage: StorageState | null }
): typeof NodesInfo.Type => ({
  nodes: nodes.map((node) => ({
    node_id: node.nodeId,
    started_at: node.startedAt,
    heartbeat_at: node.heartbeatAt,
    status: statusOf(node),
    connections: node.connections
  })),
  storage: storage === null ? null : {
    reachable: storage.isReachable,
    latency: storage.latency,
    checked_at: storage.checkedAt,
    migration: storage.migration
  }
})
