/**
 * Which names and client ids a broker in front of the cloud can tell apart.
 */
import type { Owner } from "@device-cloud/alink"

/** RabbitMQ writes `/` as `.` and `+` as `*`: in a name they would change whose a topic is. */
const isPlain = (name: string): boolean => /^[^.*#+/\\"\p{Cc}]+$/u.test(name)

/**
 * Returns why the device cannot connect with the client id; undefined: it can. The
 * broker gives a session to whoever has its client id, so this must name the device.
 */
export const refusalOf = ({ deviceName, productKey }: Owner, clientId: string): string | undefined => {
  if (!isPlain(productKey) || !isPlain(deviceName)) {
    return "names of devices at this broker have none of the characters . * # + / \\ \""
  }
  return namesDevice({ productKey, deviceName }, clientId)
    ? undefined
    : "client id: expected product_key.device_name or product_key&device_name, and behind it nothing or |…|"
}

/** Whether the client id belongs to the device, and is printable. */
export const namesDevice = ({ deviceName, productKey }: Owner, clientId: string): boolean =>
  !/[\\"\p{Cc}]/u.test(clientId) &&
  [".", "&"].includes(clientId.charAt(productKey.length)) &&
  clientId.startsWith(productKey) &&
  (clientId + "|").startsWith(`${deviceName}|`, productKey.length + 1)
