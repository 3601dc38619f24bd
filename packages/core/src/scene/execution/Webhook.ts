/**
 * Webhooks: what they say, how they are signed (Standard Webhooks), and when
 * they are tried again.
 */
import { Base64, Hex } from "effect/encoding"
import { Result } from "effect"
import type { Json } from "../../kernel/Json.ts"
import type { Mac } from "../../kernel/Mac.ts"
import type { Execution } from "./Execution.ts"
import type { Action, Scene } from "../definition/Scene.ts"
import { encodeTrigger } from "../definition/SceneDocument.ts"
import { deviceOf, type SceneEvent } from "../matching/SceneEvent.ts"
import type { WebhookRequest } from "./WebhookClient.ts"

/** With what the webhooks of a project are signed. */
export interface WebhookKeys {
  /** Text of letters and digits; the key of the signature are its bytes. */
  readonly current: string
  /** When it was made, Unix milliseconds. */
  readonly createdAt: number
  /** The one before, which signs as well until its time is over. */
  readonly previous: { readonly key: string; readonly until: number } | null
}

/** How long the key before signs as well, milliseconds. */
export const overlapMillis = 24 * 3_600_000

/** The key as receivers configure it: `whsec_` and base64. */
export const shownKey = (key: string): string => `whsec_${Base64.encode(new TextEncoder().encode(key))}`

const defaultConnectTimeout = 5
const defaultRequestTimeout = 10

/** Times that a webhook is tried again. */
export const maxRetries = 5

/** How long after the attempt of this number, from 1, the next one is, milliseconds: 1, 4, 16, 64, 256 seconds. */
export const retryDelay = (attempts: number): number => 1000 * 4 ** (attempts - 1)

/** Whether an answer says that it may go better later. */
export const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

/** What the event carries. */
const dataOf = (event: SceneEvent): Json => {
  switch (event._tag) {
    case "PropertiesChanged":
      return Object.fromEntries(Object.entries(event.properties).map(([id, { value }]) => [id, value]))
    case "EventReported":
      return { event_id: event.eventId, value: event.value }
    case "StatusChanged":
      return { status: event.status }
    case "CronTicked":
      return { cron_id: event.cronId }
    case "RunByHand":
      return {}
    case "RunByScene":
      return { scene_id: event.sceneId, execution_id: event.executionId }
  }
}

/** What stands for a trigger when no trigger of the scene has fired. */
const otherCause = (event: SceneEvent) =>
  event._tag === "RunByScene"
    ? { URI: "action/rule", params: { scene_id: event.sceneId } }
    : { URI: "manual", params: {} }

const bodyOf = ({ executionId, event, verdict, at }: Execution, scene: Pick<Scene, "sceneId" | "name">): string => {
  const trigger = verdict?.triggers.find(({ verdict }) => verdict === "holds")?.trigger
  const device = deviceOf(event)
  return JSON.stringify({
    scene_id: scene.sceneId,
    scene_name: scene.name,
    execution_id: executionId,
    trigger: trigger === undefined ? otherCause(event) : encodeTrigger(trigger),
    device: device === null
      ? null
      : { product_key: device.productKey, device_name: device.deviceName, device_id: device.deviceId },
    data: dataOf(event),
    timestamp: Math.floor(at / 1000)
  })
}

/** `v1,` and the base64 of the HMAC-SHA256 of id, time and body. */
const signature = (mac: Mac["Service"], key: string, text: string): string =>
  `v1,${Base64.encode(Result.getOrThrow(Hex.decode(mac.sign("hmacsha256", key, text))))}`

/** The request of one attempt at `now` (Unix milliseconds); the id is the same for each. */
export const webhookRequest = (options: {
  readonly execution: Execution
  readonly scene: Pick<Scene, "sceneId" | "name">
  /** Of the action in the scene, from 0. */
  readonly position: number
  readonly action: Action & { readonly _tag: "Webhook" }
  readonly keys: WebhookKeys
  readonly mac: Mac["Service"]
  readonly now: number
}): WebhookRequest => {
  const { action, execution, keys, mac, now, position, scene } = options
  const body = bodyOf(execution, scene)
  const id = `msg_${execution.executionId}_${position}`
  const timestamp = String(Math.floor(now / 1000))
  const signing = [
    keys.current,
    ...keys.previous !== null && now < keys.previous.until ? [keys.previous.key] : []
  ]
  return {
    url: action.url,
    method: action.method,
    headers: {
      "content-type": "application/json",
      "user-agent": "device-cloud",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": signing.map((key) => signature(mac, key, `${id}.${timestamp}.${body}`)).join(" ")
    },
    body,
    connectTimeout: 1000 * (action.connectTimeout ?? defaultConnectTimeout),
    requestTimeout: 1000 * (action.requestTimeout ?? defaultRequestTimeout)
  }
}
