/**
 * How fast webhooks go to one host. A request that must wait is put off and holds
 * no place meanwhile. Each project and host has a rate of its own, so nobody's
 * webhooks wait for those of another project
 * (docs/decisions/0052-pace-of-webhooks.md).
 */
import { Context, Effect, Layer } from "effect"
import type { ProjectId } from "../../project/Project.ts"

export interface WebhookLimits {
  /** Webhooks of a project to one host, per second. */
  readonly rate: number
  /** How many may go at once after a pause. */
  readonly burst: number
  /**
   * How many may be under way to one host at the same time. What waits comes back
   * about once a second, so less than `rate` slows it down.
   */
  readonly atOnce: number
}

/** Each node counts by itself. Provide another value with `Layer.succeed(WebhookLimits, { … })`. */
export const WebhookLimits = Context.Reference<WebhookLimits>("@device-cloud/core/scene/execution/WebhookLimits", {
  defaultValue: () => ({ rate: 10, burst: 50, atOnce: 10 })
})

/** What a webhook is sent to. */
export interface WebhookTarget {
  readonly projectId: ProjectId
  /** The host name of the URL, whatever its port. */
  readonly host: string
}

/** Reads the target from a URL that a scene was made with. */
export const webhookTarget = (projectId: ProjectId, url: string): WebhookTarget => ({
  projectId,
  host: URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, "") : url
})

export class WebhookPace extends Context.Service<WebhookPace, {
  /**
   * Returns null if the request may go now: it is under way until `done`.
   * Otherwise returns when its turn comes, Unix milliseconds. `hasWaited`: it was
   * put off before, so it does not queue behind those that came later.
   */
  readonly take: (target: WebhookTarget, now: number, hasWaited: boolean) => number | null
  /** The request is over. */
  readonly done: (target: WebhookTarget) => void
  /** Returns when the turn of a new request to the target comes, Unix milliseconds; null: at once. */
  readonly turn: (target: WebhookTarget, now: number) => number | null
}>()("@device-cloud/core/scene/execution/WebhookPace") {
  static readonly layer: Layer.Layer<WebhookPace> = Layer.effect(
    WebhookPace,
    Effect.map(WebhookLimits, makeWebhookPace)
  )
}

interface Lane {
  /** Requests that may go at once; grows with time up to the burst. */
  tokens: number
  /** As of when, Unix milliseconds. */
  at: number
  underWay: number
  /** When the turn of the last one comes that was put off, Unix milliseconds. */
  queueEnd: number
}

/** Hosts of projects that are remembered before those that are at rest are forgotten. */
const maxLanes = 10_000

/** Paces by these limits. Plain functions, so that a test owns the time. */
export function makeWebhookPace({ atOnce, burst, rate }: WebhookLimits): WebhookPace["Service"] {
  const interval = 1000 / rate
  const lanes = new Map<string, Lane>()
  const keyOf = ({ host, projectId }: WebhookTarget) => `${projectId}/${host}`

  const refill = (lane: Lane, now: number): void => {
    lane.tokens = Math.min(burst, lane.tokens + Math.max(0, now - lane.at) / interval)
    lane.at = now
  }

  const isAtRest = (lane: Lane, now: number): boolean => {
    refill(lane, now)
    return lane.underWay === 0 && lane.queueEnd <= now && lane.tokens >= burst
  }

  const laneOf = (target: WebhookTarget, now: number): Lane => {
    const key = keyOf(target)
    const known = lanes.get(key)
    if (known !== undefined) {
      refill(known, now)
      return known
    }
    if (lanes.size >= maxLanes) {
      for (const [other, lane] of lanes) if (isAtRest(lane, now)) lanes.delete(other)
    }
    const lane: Lane = { tokens: burst, at: now, underWay: 0, queueEnd: now }
    lanes.set(key, lane)
    return lane
  }

  const mayGo = ({ queueEnd, tokens, underWay }: Lane, now: number, hasWaited: boolean): boolean =>
    tokens >= 1 && underWay < atOnce && (hasWaited || queueEnd <= now)

  return {
    take: (target, now, hasWaited) => {
      const lane = laneOf(target, now)
      if (mayGo(lane, now, hasWaited)) {
        lane.tokens--
        lane.underWay++
        return null
      }
      // One turn after the other: those that wait come back at the rate, and not all together.
      lane.queueEnd = Math.ceil(Math.max(lane.queueEnd, now) + interval)
      return lane.queueEnd
    },
    done: (target) => {
      const lane = lanes.get(keyOf(target))
      if (lane !== undefined) lane.underWay--
    },
    turn: (target, now) => {
      const lane = lanes.get(keyOf(target))
      if (lane === undefined) return null
      refill(lane, now)
      return mayGo(lane, now, false) ? null : Math.ceil(Math.max(lane.queueEnd, now) + interval)
    }
  }
}
