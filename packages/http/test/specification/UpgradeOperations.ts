/**
 * Firmware, its upgrade tasks and the files.
 */
import {
  deviceStatus,
  deviceTask,
  type Fields,
  firmware,
  oneOf,
  page,
  paged,
  upgradeInfo,
  upgradeTask
} from "./Fields.ts"
import type { Operation } from "./Operation.ts"

export const module: Fields = { module: "string" }

const conduct: Fields = { cloud_push: "bool", timeout: "int", upgrade_type: oneOf(1), need_app_confirm: "bool" }

const rejected: Fields = { rejected_thing_status: deviceStatus }

/** What is the same of all firmware here. */
export const image = {
  name: "Lamp firmware",
  oss_path: "https://example.com/firmware.bin",
  algorithms: 1,
  hash: "93230c3bde425a9d7984a594ac55ea1e",
  remark: "Shines brighter"
}

export const upgrades: ReadonlyArray<Operation> = [
  {
    method: "GET",
    path: "/things/{device_id}/upgrade",
    query: module,
    calls: () => [{}, { query: { module: "default" } }],
    data: upgradeInfo
  },
  {
    method: "POST",
    path: "/things/{device_id}/upgrade",
    body: { task_id: "int" },
    required: ["task_id"],
    connected: "device_id",
    calls: ({ task_id }) => [{ body: { task_id } }]
  },
  {
    method: "GET",
    path: "/things/{device_id}/upgrade-step",
    query: { task_id: "int" },
    calls: ({ task_id }) => [{}, { query: { task_id: String(task_id) } }],
    data: { step: "int" }
  },
  {
    method: "GET",
    path: "/things/{device_id}/version",
    query: module,
    calls: () => [{}, { query: { module: "default" } }],
    data: { version: "string" }
  },
  {
    method: "GET",
    path: "/things/upgrade",
    query: module,
    required: ["device_ids"],
    calls: ({ device_id }) => [
      { body: { device_ids: [device_id] } },
      { query: { module: "default" }, body: { device_ids: [device_id, "unknown"] } }
    ],
    data: { things_upgrade_job: "object" }
  },
  { method: "GET", path: "/ota/firmwares/{firmware_id}", data: firmware },
  {
    method: "GET",
    path: "/ota/firmwares",
    query: { ...page, product_key: "string", name: "string" },
    calls: ({ product_key }) => [
      {},
      { query: { page: "1", page_size: "2", product_key, name: "Lamp" } }
    ],
    data: paged(firmware)
  },
  {
    method: "POST",
    path: "/products/{product_key}/ota/firmwares",
    body: {
      name: "string",
      version: "string",
      oss_path: "string",
      algorithms: oneOf(1),
      hash: "string",
      remark: "string",
      module: "string"
    },
    calls: () => [{ body: { ...image, version: "9.0.0", module: "default" } }],
    data: firmware
  },
  { method: "DELETE", path: "/ota/firmwares/{firmware_id}", on: { firmware_id: "idle_firmware_id" }, data: {} },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/verify-task",
    spoils: true,
    on: { firmware_id: "idle_firmware_id" },
    body: { device_ids: "list", ...conduct },
    calls: ({ device_id }) => [{
      body: { device_ids: [device_id], upgrade_type: 1, cloud_push: true, timeout: 600, need_app_confirm: false }
    }],
    data: "list"
  },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/upgrade-tasks",
    on: { firmware_id: "idle_firmware_id" },
    body: { ...conduct, scope_mode: oneOf(0, 1), device_ids: "list" },
    calls: ({ device_id }) => [
      {
        body: {
          cloud_push: true,
          timeout: 600,
          upgrade_type: 1,
          scope_mode: 1,
          device_ids: [device_id],
          need_app_confirm: true
        }
      },
      { body: { cloud_push: false, timeout: 0, upgrade_type: 1, scope_mode: 0, need_app_confirm: false } }
    ],
    data: { task_id: "int" }
  },
  {
    method: "GET",
    path: "/ota/firmwares/{firmware_id}/verify-task",
    on: { firmware_id: "verified_firmware_id" },
    query: rejected,
    calls:
      () => [{}, ...["online", "offline", "unactive"].map((status) => ({ query: { rejected_thing_status: status } }))],
    data: { ...paged(deviceTask), task_id: "int" }
  },
  {
    method: "GET",
    path: "/ota/upgrade-tasks/{task_id}",
    query: rejected,
    calls:
      () => [{}, ...["online", "offline", "unactive"].map((status) => ({ query: { rejected_thing_status: status } }))],
    data: paged(deviceTask)
  },
  {
    method: "GET",
    path: "/ota/firmwares/{firmware_id}/upgrade-tasks",
    query: { ...page, status: "int", task_id: "int", product_key: "string", name: "string" },
    calls: ({ product_key, task_id }) => [
      {},
      { query: { status: "0", task_id: String(task_id), page: "1", page_size: "5", product_key, name: "Lamp" } }
    ],
    data: paged(upgradeTask)
  },
  { method: "DELETE", path: "/ota/tasks/{task_id}", data: {} },
  {
    method: "PUT",
    path: "/ota/verify-tasks/{task_id}",
    on: { task_id: "verify_task_id" },
    body: { result: "bool" },
    required: ["result"],
    calls: () => [{ body: { result: true } }],
    data: {}
  },
  { method: "PUT", path: "/ota/upgrade-tasks/{task_id}/status", data: {} },
  { method: "PUT", path: "/ota/upgrade-tasks/{task_id}/things/{device_id}/status", data: {} },
  {
    method: "PUT",
    path: "/ota/upgrade-tasks/{task_id}/confirmation",
    on: { task_id: "confirmable_task_id" },
    data: {}
  },
  {
    method: "PUT",
    path: "/ota/upgrade-tasks/{task_id}/things/{device_id}/confirmation",
    on: { task_id: "confirmable_task_id" },
    data: {}
  }
]

export const content = "firmware"

export const objects: ReadonlyArray<Operation> = [
  { method: "POST", path: "/oss", calls: () => [{ file: content }], data: { url: "string", md5: "string" } },
  {
    method: "POST",
    path: "/oss/ota/{product_key}",
    calls: () => [{ file: content }],
    data: { filename: "string", size: "int", md5: "string" }
  }
]
