/**
 * How fast webhooks go to one host, and to one address. A request that must wait
 * is put off and holds no place meanwhile. Each project has a rate of its own for
 * each host and each address; all projects together have one for each address,
 * and take turns at it (docs/decisions/0052-pace-of-webhooks.md).
 */
import { Context, Effect, Layer } from "effect"
import { SharedCounts, type SharedLimit } from "../../cluster/SharedCounts.ts"
import type { ProjectId } from "../../project/Project.ts"

export interface WebhookLimits {
  /** Webhooks of a project to one host, or to one address and port, per second. */
  readonly rate: number
  /** How many may go at once after a pause. */
  readonly burst: number
  /**
   * How many may be under way to one host at the same time. What waits comes back
   * about once a second, so less than `rate` slows it down.
   */
  readonly atOnce: number
}

/**
 * Nodes count together what they send, but for what goes within a second; each has `atOnce` by itself. Provide another value with
 * `Layer.succeed(WebhookLimits, { … })`.
 */
export const WebhookLimits = Context.Reference<WebhookLimits>("@device-cloud/core/scene/execution/WebhookLimits", {
  defaultValue: () => ({ rate: 10, burst: 50, atOnce: 10 })
})

/** What a webhook is sent to. */
export interface WebhookTarget {
  readonly projectId: ProjectId
  /** The host name of the URL, whatever its port. */
  readonly host: string
}

/** What the host of a webhook stands for. */
export interface WebhookAddresses {
  readonly projectId: ProjectId
  /** Each with its port, for example `192.0.2.7:443`. */
  readonly addresses: ReadonlyArray<string>
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
  readonly take: (target: WebhookTarget | WebhookAddresses, now: number, hasWaited: boolean) => number | null
  /** The request is over. */
  readonly done: (target: WebhookTarget | WebhookAddresses) => void
  /** Returns when the turn of a new request to the target comes, Unix milliseconds; null: at once. */
  readonly turn: (target: WebhookTarget, now: number) => number | null
}>()("@device-cloud/core/scene/execution/WebhookPace") {
  static readonly layer: Layer.Layer<WebhookPace, never, SharedCounts> = Layer.effect(
    WebhookPace,
    Effect.gen(function*() {
      const { charge, counted, ...pace } = makeWebhookPace(yield* WebhookLimits)
      yield* (yield* SharedCounts).share({ name: "scene/webhooks", charge, counted })
      return pace
    })
  )
}

/** So many times the limits of a project hold for all projects together, at one address. */
const projectsAtAddress = 10

/** Lanes that are remembered. Above it, the one that was used least lately is forgotten, if nothing of it is under way. */
const maxLanes = 10_000

/** What one project has of a lane. */
interface Share {
  underWay: number
  /** When the turn of its last request comes that was put off, Unix milliseconds. */
  queueEnd: number
}

interface Lane {
  readonly limits: WebhookLimits
  /** Requests that may go at once; grows with time up to the burst. */
  tokens: number
  /** As of when, Unix milliseconds. */
  at: number
  underWay: number
  /** Of the projects that have requests under way or put off. */
  readonly shares: Map<ProjectId, Share>
}

/** A place that a request needs. */
interface Claim {
  readonly key: string
  readonly limits: WebhookLimits
}

/** Paces by these limits. Plain functions, so that a test owns the time. */
export function makeWebhookPace(
  limits: WebhookLimits,
  capacity = maxLanes
): WebhookPace["Service"] & Pick<SharedLimit, "charge" | "counted"> {
  const { atOnce, burst, rate } = limits
  const together = {
    rate: rate * projectsAtAddress,
    burst: burst * projectsAtAddress,
    atOnce: atOnce * projectsAtAddress
  }
  /** The one that was used least lately comes first. */
  const lanes = new Map<string, Lane>()
  /** How many went since the other nodes were told, by lane. */
  const sent = new Map<string, number>()

  const claimsOf = (target: WebhookTarget | WebhookAddresses): ReadonlyArray<Claim> =>
    "host" in target
      ? [{ key: `${target.projectId}/${target.host}`, limits }]
      : [...new Set(target.addresses)].flatMap((address) => [
        { key: `${target.projectId}@${address}`, limits },
        { key: `@${address}`, limits: together }
      ])

  const refill = (lane: Lane, now: number): void => {
    const { burst, rate } = lane.limits
    lane.tokens = Math.min(burst, lane.tokens + Math.max(0, now - lane.at) * rate / 1000)
    lane.at = now
    for (const [projectId, { queueEnd, underWay }] of lane.shares) {
      if (underWay === 0 && queueEnd <= now) lane.shares.delete(projectId)
    }
  }

  const forgetOne = (): void => {
    for (const [key, { underWay }] of lanes) {
      if (underWay === 0) return void lanes.delete(key)
    }
  }

  const laneOf = ({ key, limits }: Claim, now: number): Lane => {
    const known = lanes.get(key)
    if (known === undefined && lanes.size >= capacity) forgetOne()
    const lane = known ?? { limits, tokens: limits.burst, at: now, underWay: 0, shares: new Map<ProjectId, Share>() }
    lanes.delete(key)
    lanes.set(key, lane)
    refill(lane, now)
    return lane
  }

  /** No project has more under way than its part while others wait. */
  const mayGo = (lane: Lane, share: Share, now: number, hasWaited: boolean): boolean =>
    lane.tokens >= 1 && lane.underWay < lane.limits.atOnce && (hasWaited || share.queueEnd <= now) &&
    share.underWay < Math.ceil(lane.limits.atOnce / Math.max(1, lane.shares.size))

  /** One turn after the other, of each project as of the others: those that wait come back at the rate. */
  const nextTurn = (lane: Lane, { queueEnd }: Share, now: number): number =>
    Math.ceil(Math.max(queueEnd, now) + 1000 / lane.limits.rate * Math.max(1, lane.shares.size))

  return {
    take: (target, now, hasWaited) => {
      const places = claimsOf(target).map((claim) => {
        const lane = laneOf(claim, now)
        const { key } = claim
        const share = lane.shares.get(target.projectId) ?? { underWay: 0, queueEnd: now }
        lane.shares.set(target.projectId, share)
        return { key, lane, share }
      })
      const full = places.filter(({ lane, share }) => !mayGo(lane, share, now, hasWaited))
      if (full.length > 0) {
        for (const { lane, share } of full) share.queueEnd = nextTurn(lane, share, now)
        return Math.max(...full.map(({ share }) => share.queueEnd))
      }
      for (const { key, lane, share } of places) {
        if (sent.size < capacity) sent.set(key, (sent.get(key) ?? 0) + 1)
        lane.tokens--
        lane.underWay++
        share.underWay++
      }
      return null
    },
    done: (target) => {
      for (const { key } of claimsOf(target)) {
        const lane = lanes.get(key)
        const share = lane?.shares.get(target.projectId)
        if (lane === undefined || share === undefined) continue
        lane.underWay--
        share.underWay--
      }
    },
    turn: (target, now) => {
      const lane = lanes.get(claimsOf(target)[0]!.key)
      if (lane === undefined) return null
      refill(lane, now)
      const share = lane.shares.get(target.projectId) ?? { underWay: 0, queueEnd: now }
      return mayGo(lane, share, now, false) ? null : nextTurn(lane, share, now)
    },
    counted: () => {
      const counted = [...sent]
      sent.clear()
      return counted
    },
    charge: (key, amount, now) => {
      laneOf({ key, limits: key.startsWith("@") ? together : limits }, now).tokens -= amount
    }
  }
}
