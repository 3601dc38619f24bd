/**
 * Scenes as the API has them, while somebody writes one.
 */
import type { api } from "../../api/client.ts"
import type { Body, Data } from "../../api/Operations.ts"

export type StoredScene = Data<typeof api.scenes.getScene>
export type SceneBody = Body<typeof api.scenes.createScene>

/** A trigger, condition or action: its kind, and what it needs. */
export interface Part {
  readonly URI: string
  readonly params: Readonly<Record<string, unknown>>
}

export const roles = ["triggers", "conditions", "actions"] as const
export type PartRole = (typeof roles)[number]

export interface Draft {
  readonly name: string
  readonly desc: string
  readonly status: "enable" | "disable"
  readonly triggers: ReadonlyArray<Part>
  readonly conditions: ReadonlyArray<Part>
  readonly actions: ReadonlyArray<Part>
}

export const emptyDraft: Draft = { name: "", desc: "", status: "enable", triggers: [], conditions: [], actions: [] }

export const draftOf = ({ actions, conditions, desc, name, status, triggers }: StoredScene): Draft => ({
  name,
  desc,
  status: status as Draft["status"],
  triggers: triggers as unknown as ReadonlyArray<Part>,
  conditions: conditions as unknown as ReadonlyArray<Part>,
  actions: actions as unknown as ReadonlyArray<Part>
})

/** As it is sent; what has no value is left out. A part of the application's own says itself what an empty text means. */
export const bodyOf = (draft: Draft): SceneBody => {
  const written = (role: PartRole) =>
    draft[role].map(({ URI, params }) => ({
      URI,
      params: Object.hasOwn(kinds[role], URI)
        ? Object.fromEntries(Object.entries(params).filter(([, value]) => value !== "" && value !== undefined))
        : params
    }))
  return {
    ...draft,
    triggers: written("triggers"),
    conditions: written("conditions"),
    actions: written("actions")
  } as unknown as SceneBody
}

/** What a part of each kind begins with, by its role. */
export const kinds: Readonly<Record<PartRole, Readonly<Record<string, Part["params"]>>>> = {
  triggers: {
    "trigger/device/property": { product_key: "", device_name: "*", property_id: "*" },
    "trigger/device/event": { product_key: "", device_name: "*", event_id: "*" },
    "trigger/device/status": { product_key: "", device_name: "*", status: "*" },
    "trigger/cron": { cron: "0 0 7 * * *", time_zone: "" }
  },
  conditions: {
    "condition/device/property": { product_key: "", device_name: "*", property_id: "" },
    "condition/device/status": { product_key: "", device_name: "*", status: "online", status_duration: 0 },
    "condition/time/window": { start: "08:00", end: "20:00", days: [], time_zone: "" },
    "condition/time/range": { time_range: { start_timestamp: 0, end_timestamp: 0 } }
  },
  actions: {
    "action/device/property": { device_id: "", items: {} },
    "action/device/service": { device_id: "", service_id: "", items: {} },
    "action/rule": { scene_id: "" },
    "action/webhook": { URL: "https://", method: "POST" },
    "action/delay": { seconds: 60 }
  }
}
