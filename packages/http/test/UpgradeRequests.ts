/**
 * Firmware and upgrade tasks over the management API, and what their devices say.
 */
import { call, createDevice, type DeviceTriple, uplink } from "@device-cloud/testing/http"
import { Effect } from "effect"

export const firmwareBody = {
  name: "Thermostat",
  version: "1.1.0",
  oss_path: "https://cloud.example.com/firmware.bin",
  algorithms: 1,
  hash: "93230c3bde425a9d7984a594ac55ea1e",
  remark: "Faster",
  size: 432_945
}

export const createFirmware = (productKey: string, body: object = {}) =>
  call("POST", `/products/${productKey}/ota/firmwares`, { body: { ...firmwareBody, ...body } })

export const newFirmware = (productKey: string, body: object = {}) =>
  Effect.map(createFirmware(productKey, body), ({ body }) => body.data.id as number)

export interface TestDevice extends DeviceTriple {
  readonly device_id: string
}

export const devicesOf = (productKey: string, count: number) =>
  Effect.forEach(
    Array.from({ length: count }),
    () => Effect.map(createDevice(productKey), (device) => device as unknown as TestDevice)
  )

export const ids = (devices: ReadonlyArray<TestDevice>) => devices.map(({ device_id }) => device_id)

/** What a device says of its upgrade, over HTTP. */
export const say = (device: TestDevice, method: "inform" | "progress" | "firmware.get", params: object) =>
  Effect.map(
    uplink(device, "PostOTA", { body: { id: 1, method: `thing.ota.${method}`, params } }),
    ({ body }) => body
  )

export const recordsOf = (taskId: number, query = "") =>
  Effect.map(call("GET", `/ota/upgrade-tasks/${taskId}${query}`), ({ body }) => body.data)

export const statusesOf = (taskId: number) =>
  Effect.map(recordsOf(taskId, "?page_size=100"), ({ results }) =>
    new Map(
      (results as ReadonlyArray<{ readonly device_id: string; readonly status: number; readonly step: number }>)
        .map(({ device_id, status, step }) => [device_id, [status, step]])
    ))

export const taskOf = (firmwareId: number, taskId: number) =>
  Effect.map(
    call("GET", `/ota/firmwares/${firmwareId}/upgrade-tasks?task_id=${taskId}`),
    ({ body }) => body.data.results[0]
  )

export const createTask = (firmwareId: number, body: object) =>
  call("POST", `/ota/firmwares/${firmwareId}/upgrade-tasks`, { body })
