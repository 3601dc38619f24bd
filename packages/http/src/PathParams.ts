/**
 * The parameters of paths.
 *
 * Any text that could be stored is an identifier: the handler looks for it, and
 * fails with "there is no …" when nothing has it.
 */
import { DeviceId, DeviceName, ProductKey, ProjectId, SceneId, Text } from "@device-cloud/core"
import { Schema } from "effect"

const id = <S extends Schema.Codec<string & {}, string>>(schema: S) => Text(128).pipe(Schema.decodeTo(schema))

/** A product. */
export const productKey = { product_key: id(ProductKey) }
/** A device by its id. */
export const deviceId = { device_id: id(DeviceId) }
/** A device by its product and name. */
export const deviceName = { ...productKey, device_name: id(DeviceName) }
/** A number of digits alone, within bounds; the description of the API has them. */
export const wholeNumber = (maximum: number, minimum = 0) => {
  const digits = /^\d{1,16}$/u
  const toJsonSchema = () => ({ pattern: digits.source, minimum, maximum })
  return Schema.String.check(Schema.isPattern(digits, { expected: "a whole number", toJsonSchema })).pipe(
    Schema.decodeTo(Schema.FiniteFromString.check(Schema.isBetween({ minimum, maximum })))
  )
}

const number = wholeNumber(Number.MAX_SAFE_INTEGER)

/** A firmware. */
export const firmware = { firmware_id: number }
/** A verify or upgrade task. */
export const task = { task_id: number }
/** A device of a task. */
export const deviceOfTask = { ...task, ...deviceId }
/** A job. */
export const job = { job_id: number }
/** A batch of a product. */
export const batch = { ...productKey, batch_id: number }
/** A group of devices. */
export const deviceGroup = { group_id: number }
/** A subscription. */
export const subscription = { subscription_id: number }
/** A bulk command. */
export const bulkCommand = { bulk_id: number }
/** A mesh network by its key. */
export const network = { network_key: Text(128) }
/** A node of a mesh network. */
export const meshNode = { ...network, ...deviceId }
/** An access key. */
export const accessKeyId = { id: Text(128) }
/** A scene. */
export const scene = { id: id(SceneId) }
/** A project. */
export const projectId = { project_id: id(ProjectId) }
/** A service of a device. */
export const service = { ...deviceId, service_id: Text(128) }
/** A message to a device. */
export const message = { ...deviceId, message_id: Text(128) }
/** A certificate of a device. */
export const certificate = { ...deviceId, serial: Text(128) }
/** An authority that issues certificates. */
export const authority = { authority_id: Text(128) }
/** A property of a device. */
export const property = { ...deviceId, property_id: Text(128) }
