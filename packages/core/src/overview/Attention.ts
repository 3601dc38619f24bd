/**
 * What needs the attention of an operator (docs/api/overview.md).
 */
import type { Trouble } from "../activity/TroubleStore.ts"
import type { DeviceIdentity } from "../device/Device.ts"
import type { UpgradeTask } from "../ota/task/UpgradeTask.ts"
import type { AccessKey } from "../project/AccessKey.ts"
import type { QuotaName } from "../project/Quota.ts"
import type { QuotaReport } from "../project/Quotas.ts"
import type { Scene } from "../scene/definition/Scene.ts"
import type { StoredSubscription } from "../subscription/SubscriptionStore.ts"

/** Items of one kind, at most. */
export const maxAttention = 20

/** How long before its expiry an access key needs attention, milliseconds: 14 days. */
export const expiresSoonMillis = 14 * 86_400_000

/** An upgrade task none of whose devices has moved on for so long is stuck, milliseconds. */
export const stuckMillis = 3_600_000

/** The part of a quota that may be used before it needs attention. */
const nearlyUsed = 0.9

type NamedDevice = Pick<DeviceIdentity, "deviceId" | "productKey" | "deviceName">

/** What an upgrade task that is stuck waits for: a user who confirms it or opens its next stage, its window of time, or its devices. */
export type UpgradeWaitsFor = "confirmation" | "stage" | "window" | "devices"

/** Times are Unix milliseconds. */
export type Attention =
  | {
    /** A device changes its status again and again; its messages are refused. */
    readonly kind: "device_flapping" | "device_refused"
    readonly device: NamedDevice
    readonly since: number
    readonly at: number
    /** Changes of the status, or refused messages. */
    readonly count: number
    /** The code of the latest refusal; empty for the other kind. */
    readonly code: string
  }
  | {
    /** No device of an upgrade task has moved on for an hour. */
    readonly kind: "upgrade_stuck"
    readonly task: UpgradeTask
    /** The latest change. */
    readonly since: number
    /** Devices that have not ended. */
    readonly count: number
    readonly waitsFor: UpgradeWaitsFor
  }
  | {
    /** Executions of a scene have failed. */
    readonly kind: "scene_failing"
    readonly scene: Pick<Scene, "sceneId" | "name">
    readonly since: number
    readonly at: number
    readonly count: number
    /** The status of the latest one. */
    readonly status: string
    /** Whether the scene calls a webhook. */
    readonly hasWebhook: boolean
  }
  | {
    /** The webhook of a subscription does not take events. */
    readonly kind: "subscription_failing"
    readonly subscription: { readonly subscriptionId: number; readonly name: string }
    readonly since: number
    /** Attempts. */
    readonly count: number
    /** A sentence. It may repeat parts of the address of the webhook. */
    readonly reason: string
    readonly isPaused: boolean
  }
  | {
    readonly kind: "access_key_expires"
    readonly accessKey: Pick<AccessKey, "id" | "name">
    readonly expiresAt: number
  }
  | {
    readonly kind: "quota_nearly_used"
    readonly quota: QuotaName
    readonly used: number
    readonly limit: number
  }

/** The item of a trouble with a device. */
export const troubledDevice = (
  { at, detail, kind, since, times }: Trouble,
  { deviceId, deviceName, productKey }: NamedDevice
): Attention => ({
  kind: kind === "flapping" ? "device_flapping" : "device_refused",
  device: { deviceId, productKey, deviceName },
  since,
  at,
  count: times,
  code: detail
})

/** The items of troubles whose scene is there. */
export const troubledScenes = (
  troubles: ReadonlyArray<Trouble>,
  scenes: ReadonlyArray<Scene>
): ReadonlyArray<Attention> =>
  troubles.flatMap(({ at, detail, kind, since, subject, times }): ReadonlyArray<Attention> => {
    const scene = scenes.find(({ sceneId }) => sceneId === subject)
    if (scene === undefined || kind !== "execution-failed") return []
    const { actions, name, sceneId } = scene
    const hasWebhook = actions.some(({ _tag }) => _tag === "Webhook")
    return [{ kind: "scene_failing", scene: { sceneId, name }, since, at, count: times, status: detail, hasWebhook }]
  })

const waitsFor = (
  { counts, isAppConfirmed, needAppConfirm, stage, stages, startWindow }: UpgradeTask
): UpgradeWaitsFor => {
  if (counts.upgrading > 0) return "devices"
  if (needAppConfirm && !isAppConfirmed) return "confirmation"
  if (stage <= stages.length) return "stage"
  return startWindow === null ? "devices" : "window"
}

/** Those of the tasks under way that are stuck at `now`. */
export const stuckUpgrades = (tasks: ReadonlyArray<UpgradeTask>, now: number): ReadonlyArray<Attention> =>
  tasks.flatMap((task): ReadonlyArray<Attention> => {
    const count = task.counts.pending + task.counts.upgrading
    return count === 0 || task.updatedAt + stuckMillis > now
      ? []
      : [{ kind: "upgrade_stuck", task, since: task.updatedAt, count, waitsFor: waitsFor(task) }]
  })

/** Those of the subscriptions whose webhooks fail. */
export const failingSubscriptions = (pushing: ReadonlyArray<StoredSubscription>): ReadonlyArray<Attention> =>
  pushing.flatMap(({ progress: { failure }, subscription: { name, subscriptionId } }): ReadonlyArray<Attention> =>
    failure === null ? [] : [{
      kind: "subscription_failing",
      subscription: { subscriptionId, name },
      since: failure.since,
      count: failure.attempts,
      reason: failure.reason,
      isPaused: failure.pausedAt !== null
    }]
  )

/** Those of the keys that expire soon after `now`, the first ones first. */
export const expiringKeys = (keys: ReadonlyArray<AccessKey>, now: number): ReadonlyArray<Attention> =>
  keys.flatMap(({ expiresAt, id, name }) =>
    expiresAt !== null && expiresAt > now && expiresAt <= now + expiresSoonMillis
      ? [{ kind: "access_key_expires" as const, accessKey: { id, name }, expiresAt }]
      : []
  ).toSorted((a, b) => a.expiresAt - b.expiresAt)

/** The quotas of which nine tenths are used. */
export const nearlyUsedQuotas = ({ limits, used }: QuotaReport): ReadonlyArray<Attention> =>
  (Object.entries(used) as ReadonlyArray<[QuotaName, number]>).flatMap(([quota, amount]) =>
    amount > 0 && amount >= limits[quota] * nearlyUsed
      ? [{ kind: "quota_nearly_used" as const, quota, used: amount, limit: limits[quota] }]
      : []
  )
