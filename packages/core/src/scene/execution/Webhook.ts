/**
 * Webhooks: what they carry, and how they are signed, which is as Standard
 * Webhooks has it (docs/api/scenes.md).
 */
import { Base64, Hex } from "effect/encoding"
import { Result } from "effect"
import type { Json } from "../../kernel/Json.ts"
import type { Mac } from "../../kernel/Mac.ts"
import type { Execution } from "./Execution.ts"
import type { WebhookMethod } from "../definition/Action.ts"
import { renderBody } from "../definition/BodyTemplate.ts"
import type { Scene } from "../definition/Scene.ts"
import { encodeTrigger } from "../definition/Trigger.ts"
import { deviceOf, type SceneEvent } from "../matching/SceneEvent.ts"
import type { WebhookRequest } from "./WebhookClient.ts"

/** A webhook to send. */
export interface Webhook {
  /** The same for each attempt, so that the receiver knows it. */
  readonly id: string
  readonly url: string
  readonly method: WebhookMethod
  readonly body: string
  /** Seconds; null: the default, 5. */
  readonly connectTimeout: number | null
  /** Seconds; null: the default, 10. */
  readonly requestTimeout: number | null
  /** It was put off before, so it does not queue behind those that came later. */
  readonly hasWaited: boolean
}

/** The keys with which the webhooks of a project are signed. */
export interface WebhookKeys {
  /** A text of letters and digits. Its bytes are the key. */
  readonly current: string
  /** When the current key was made, Unix milliseconds. */
  readonly createdAt: number
  /** The key before, which signs as well until then (Unix milliseconds). */
  readonly previous: { readonly key: string; readonly until: number } | null
}

/** How long the key before the current one signs as well, milliseconds. */
export const overlapMillis = 24 * 3_600_000

/** Writes a key as receivers configure it: `whsec_` and base64. */
export const shownKey = (key: string): string => `whsec_${Base64.encode(new TextEncoder().encode(key))}`

const defaultConnectTimeout = 5
const defaultRequestTimeout = 10

/** Returns whether another attempt may go better after a response of this HTTP status. */
export const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

/** Returns what the event carries. */
const dataOf = (event: SceneEvent): Json => {
  switch (event._tag) {
    case "PropertiesChanged":
      return Object.fromEntries(Object.entries(event.properties).map(([id, { value }]) => [id, value]))
    case "EventReported":
      return { event_id: event.eventId, value: event.value }
    case "StatusChanged":
      return { status: event.status }
    case "StatusLasted":
      return { status: event.status, status_duration: event.minutes }
    case "CronTicked":
      return { cron_id: event.cronId }
    case "RunByHand":
      return {}
    case "RunByScene":
      return { scene_id: event.sceneId, execution_id: event.executionId }
  }
}

/** Returns what stands in place of a trigger when no trigger of the scene has fired. */
const otherCause = (event: SceneEvent) =>
  event._tag === "RunByScene"
    ? { URI: "action/rule", params: { scene_id: event.sceneId } }
    : { URI: "manual", params: {} }

/** Returns the body of a webhook; undefined: its template makes one that is too long. */
export const webhookBody = (
  { at, event, executionId, verdict }: Execution,
  scene: Pick<Scene, "sceneId" | "name">,
  template: string | undefined
): string | undefined => {
  const trigger = verdict?.triggers.find(({ verdict }) => verdict === "holds")?.trigger
  const cause = trigger === undefined ? otherCause(event) : encodeTrigger(trigger)
  const device = deviceOf(event)
  const named = device === null
    ? null
    : { product_key: device.productKey, device_name: device.deviceName, device_id: device.deviceId }
  const told = {
    scene_id: scene.sceneId,
    scene_name: scene.name,
    execution_id: executionId,
    trigger: cause,
    device: named,
    data: dataOf(event),
    timestamp: Math.floor(at / 1000)
  }
  if (template === undefined) return JSON.stringify(told)
  return renderBody(template, {
    ...told,
    trigger: cause.URI,
    product_key: null,
    device_name: null,
    device_id: null,
    ...named,
    time: new Date(at).toISOString()
  })
}

/** Signs id, time and body: `v1,` and the HMAC-SHA256 in base64. */
const signature = (mac: Mac["Service"], key: string, text: string): string =>
  `v1,${Base64.encode(Result.getOrThrow(Hex.decode(mac.sign("hmacsha256", key, text))))}`

/** Makes the request of one attempt at `now` (Unix milliseconds). */
export const webhookRequest = (
  { body, connectTimeout, id, method, requestTimeout, url }: Webhook,
  { admits, keys, mac, now }: Pick<WebhookRequest, "admits"> & {
    readonly keys: WebhookKeys
    readonly mac: Mac["Service"]
    readonly now: number
  }
): WebhookRequest => {
  const timestamp = String(Math.floor(now / 1000))
  const signing = [
    keys.current,
    ...keys.previous !== null && now < keys.previous.until ? [keys.previous.key] : []
  ]
  return {
    url,
    method,
    headers: {
      "content-type": "application/json",
      "user-agent": "device-cloud",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": signing.map((key) => signature(mac, key, `${id}.${timestamp}.${body}`)).join(" ")
    },
    body,
    connectTimeout: 1000 * (connectTimeout ?? defaultConnectTimeout),
    requestTimeout: 1000 * (requestTimeout ?? defaultRequestTimeout),
    admits
  }
}
