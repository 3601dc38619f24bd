/**
 * The identifiers in paths.
 */
import { DeviceId, DeviceName, ProductKey, ProjectId, SceneId, Text } from "@device-cloud/core"
import { Schema } from "effect"

// Any text that could be stored is an identifier, of something that may not exist.
const id = <S extends Schema.Codec<string & {}, string>>(schema: S) => Text(128).pipe(Schema.decodeTo(schema))

export const productKey = { product_key: id(ProductKey) }
export const deviceId = { device_id: id(DeviceId) }
export const deviceName = { ...productKey, device_name: id(DeviceName) }
/** Digits, and nothing else. */
export const wholeNumber = (maximum: number) =>
  Schema.String.check(Schema.isPattern(/^\d{1,16}$/, { expected: "a whole number" })).pipe(
    Schema.decodeTo(Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum })))
  )

/** A number that names nothing is looked for, and not found. */
const number = wholeNumber(Number.MAX_SAFE_INTEGER)

export const firmware = { firmware_id: number }
export const task = { task_id: number }
export const deviceOfTask = { ...task, ...deviceId }
export const batch = { ...productKey, batch_id: number }
export const network = { network_key: Text(128) }
export const meshNode = { ...network, ...deviceId }
export const accessKeyId = { id: Text(128) }
export const scene = { id: id(SceneId) }
export const projectId = { project_id: id(ProjectId) }
export const service = { ...deviceId, service_id: Text(128) }
export const message = { ...deviceId, message_id: Text(128) }
export const property = { ...deviceId, property_id: Text(128) }
