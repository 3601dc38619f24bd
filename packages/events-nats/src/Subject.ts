/**
 * The subjects on which events are published.
 */
import { type DomainEvent, eventTypes, projectOf } from "@device-cloud/core"

/** In place of product and device, for an event that no device has caused. */
const none = "_"

const encoder = new TextEncoder()

/** Writes what a part of a subject cannot contain as `%` and two hexadecimal digits for each byte of UTF-8. */
const escape = (text: string): string =>
  text.replace(
    /[^!-~]|[%.*>]/gu,
    (character) =>
      Array.from(encoder.encode(character), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("")
  )

/** `<prefix>.<project>.<type>.<product key>.<device name>`, for example `device-cloud.default.property.a1B2c3D4e5F.desk`. */
export const subjectOf = (prefix: string, event: DomainEvent): string => {
  const { device } = event
  const named = device === null ? [none, none] : [escape(device.productKey), escape(device.deviceName)]
  return [prefix, escape(projectOf(event)), eventTypes[event._tag], ...named].join(".")
}
