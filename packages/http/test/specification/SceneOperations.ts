/**
 * Scenes.
 */
import { enabledStatus, type Fields, listOf, page, paged } from "./Fields.ts"
import type { Given, Operation } from "./Operation.ts"

const part: Fields = { URI: "string", params: "object" }

const scene: Fields = {
  id: "string",
  name: "string",
  status: enabledStatus,
  triggers: listOf(part),
  conditions: listOf(part),
  actions: listOf(part),
  created_at: "seconds",
  updated_at: "seconds"
}

/** One of each trigger, condition and action, with all that they can carry. */
export const sceneBody = ({ device_id, device_name, product_key, scene_id }: Given, name: string) => {
  const of = { product_key, device_name }
  const compared = { property_id: "power", compare_type: "==", compare_val: "1" }
  return {
    name,
    desc: "Everything",
    status: "enable",
    triggers: [
      { URI: "trigger/device/property", params: { type: "trigger/device/property", ...of, ...compared } },
      { URI: "trigger/device/event", params: { product_key, device_name: "*", event_id: "*" } },
      { URI: "trigger/device/status", params: { ...of, status: "offline" } },
      { URI: "trigger/cron", params: { cron: "0 0 8 * * *" } }
    ],
    conditions: [
      { URI: "condition/device/property", params: { ...of, ...compared, compare_type: "in", compare_val: "0,1" } },
      { URI: "condition/device/status", params: { ...of, status: "*", status_duration: 5 } },
      { URI: "condition/time/range", params: { time_range: { start_timestamp: 0, end_timestamp: 4_000_000_000 } } }
    ],
    actions: [
      { URI: "action/device/property", params: { device_id, property_id: "power", items: { power: 1 } } },
      { URI: "action/device/service", params: { device_id, service_id: "reset", items: { delay: 1 } } },
      ...scene_id === "" ? [] : [{ URI: "action/rule", params: { scene_id } }],
      {
        URI: "action/webhook",
        params: {
          URL: "https://hook.invalid/alarm",
          method: "POST",
          desc: "Alarm",
          connect_timeout: 1,
          request_timeout: 1
        }
      }
    ]
  }
}

const sceneFields: Fields = {
  name: "string",
  desc: "string",
  status: enabledStatus,
  triggers: "list",
  conditions: "list",
  actions: "list"
}

let lastScene = 0

const newScene = (given: Given) => sceneBody(given, `Scene ${++lastScene} of ${given.device_id}`)

/** More of one part than a scene may have. */
const tooMany = (list: string, count: number, URI: string) => ({
  [list]: Array.from({ length: count }, () => ({ URI, params: {} }))
})

export const scenes: ReadonlyArray<Operation> = [
  {
    method: "POST",
    path: "/rule-engine/scenes",
    body: sceneFields,
    required: ["name", "status"],
    calls: (given) => [
      { body: newScene(given) },
      { body: { name: newScene(given).name, status: "disable" } }
    ],
    data: scene,
    refuses: [
      [tooMany("triggers", 11, "trigger/cron"), "triggers"],
      [tooMany("conditions", 21, "condition/time/range"), "conditions"],
      [tooMany("actions", 51, "action/rule"), "actions"],
      [{ triggers: [{ URI: "trigger/other", params: {} }] }, "triggers[0].URI"],
      [
        { triggers: [{ URI: "trigger/device/property", params: { device_name: "*" } }] },
        "triggers[0].params.product_key"
      ]
    ]
  },
  {
    method: "PUT",
    path: "/rule-engine/scenes/{id}",
    on: { id: "scene_id" },
    body: sceneFields,
    required: ["name", "status"],
    calls: (given) => [{ body: newScene(given) }],
    data: scene
  },
  { method: "GET", path: "/rule-engine/scenes/{id}", on: { id: "scene_id" }, data: scene },
  {
    method: "GET",
    path: "/rule-engine/scenes",
    query: { ...page, name: "string", status: enabledStatus },
    calls: () => [{}, { query: { name: "Scene", status: "enable", page: "1", page_size: "5" } }],
    data: paged(scene)
  },
  {
    method: "POST",
    path: "/rule-engine/scenes/{id}/actions",
    on: { id: "scene_id" },
    data: { execution_id: "string" }
  },
  {
    method: "PUT",
    path: "/rule-engine/scenes/{id}/status",
    on: { id: "scene_id" },
    body: { status: enabledStatus },
    required: ["status"],
    calls: () => ["disable", "enable"].map((status) => ({ body: { status } })),
    data: {}
  },
  { method: "DELETE", path: "/rule-engine/scenes/{id}", on: { id: "scene_id" }, data: {} }
]
