import { assert, it } from "@effect/vitest"
import type { DeviceId, DeviceName, ProductKey, ProjectId } from "../src/index.ts"
import { type DomainEvent, eventDocument, eventText } from "../src/index.ts"

const device = {
  deviceId: "d\"1" as DeviceId,
  productKey: "lamp\\s" as ProductKey,
  deviceName: "Küche\n1" as DeviceName,
  projectId: "default" as ProjectId
}
const at = 1_795_231_554_300
const link = { address: "203.0.113.7", transport: "mqtt", nodeId: "n1" }

const scene = {
  _tag: "SceneExecuted",
  projectId: device.projectId,
  at,
  sceneId: "s1",
  sceneName: "\"Night\"",
  executionId: "e1",
  status: "succeeded",
  reason: ""
} as const

const events: ReadonlyArray<DomainEvent> = [
  { _tag: "DeviceStatusChanged", device, at, status: "online", version: 3 },
  { _tag: "DeviceStatusChanged", device, at, status: "offline", version: 4, link, reason: "said \"bye\"" },
  { _tag: "ConnectionReplaced", device, at, link: { ...link, gateway: device } },
  {
    _tag: "PropertiesReported",
    device,
    at,
    properties: { "名": { value: ["\u2028", 1.5e300, null], time: at }, b: { value: { c: false }, time: 0 } }
  },
  { _tag: "PropertiesReported", device, at, properties: {} },
  {
    _tag: "PropertiesReported",
    device,
    at,
    properties: Object.fromEntries(
      [21.5, -0, 1e21, 5e-324, true, null, "", "\"\ud800", [], { a: Number.NaN }]
        .map((value, i) => [`p\\${9 - i}`, { value, time: at - i }])
    )
  },
  { _tag: "EventReported", device, at, eventId: "alarm", time: at - 1, value: { level: -0.25 } },
  { _tag: "CommandReplied", device, at, messageId: 7, code: 200, message: "", data: null },
  {
    _tag: "UpgradeProgressed",
    device,
    at,
    taskId: 1,
    module: "default",
    version: "2",
    status: "failed",
    step: -1,
    reason: "no space"
  },
  { _tag: "DeviceLifecycle", device, at, action: "create" },
  { _tag: "TopologyChanged", device, at, action: "delete", subDevices: [device] },
  { ...scene, device },
  { ...scene, device: null }
]

it("the text of an event is its document as JSON", () => {
  for (const event of events) assert.strictEqual(eventText(event), JSON.stringify(eventDocument(event)))
})
