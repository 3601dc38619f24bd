/**
 * The texts that devices sign, and how a signature is compared
 * (specification, Authentication).
 */

/** What a device signs when it connects; `timestamp` takes part when the device sent one. */
export const connectText = (options: {
  readonly clientId: string
  readonly deviceName: string
  readonly productKey: string
  readonly timestamp?: string | undefined
}): string => {
  const text = `clientId${options.clientId}deviceName${options.deviceName}productKey${options.productKey}`
  return options.timestamp === undefined ? text : `${text}timestamp${options.timestamp}`
}

/** What a device signs with a message over HTTP (specification, Device HTTP uplink). */
export const uplinkText = (options: {
  readonly productKey: string
  readonly deviceName: string
  readonly random: string
}): string => `productKey${options.productKey}deviceName${options.deviceName}random${options.random}`

/** What a device signs to get a triple that was created beforehand; `mac` names it. */
export const registerText = (options: {
  readonly mac: string
  readonly productKey: string
  readonly random: string
}): string => `mac${options.mac}productKey${options.productKey}random${options.random}`

/** What a device signs to register under a name of its own. */
export const generatorText = (options: {
  readonly deviceName: string
  readonly productKey: string
  readonly random: string
}): string => `deviceName${options.deviceName}productKey${options.productKey}random${options.random}`

/** What a device's token stands for, under the device's secret. */
export const tokenText = (options: {
  readonly clientId: string
  readonly deviceName: string
  readonly productKey: string
}): string => `deviceTokenclientId${options.clientId}deviceName${options.deviceName}productKey${options.productKey}`

/**
 * What a sub-device signs for its gateway, or a device for a network: the names
 * and values of the fields, sorted by name.
 */
export const fieldsText = (fields: Readonly<Record<string, string>>): string =>
  Object.keys(fields).sort().map((name) => name + fields[name]).join("")
