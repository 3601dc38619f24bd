/**
 * The texts that devices sign (docs/protocol/signatures.md).
 */

/** The text that a device signs when it connects. `timestamp` takes part if the device has sent one. */
export const connectText = (options: {
  readonly clientId: string
  readonly deviceName: string
  readonly productKey: string
  readonly timestamp?: string | undefined
}): string => {
  const text = `clientId${options.clientId}deviceName${options.deviceName}productKey${options.productKey}`
  return options.timestamp === undefined ? text : `${text}timestamp${options.timestamp}`
}

/** The text that a device signs with a message over HTTP. What it sends beside the random takes part. */
export const uplinkText = (options: {
  readonly productKey: string
  readonly deviceName: string
  readonly random: string
  readonly timestamp?: string | undefined
  readonly contentSha256?: string | undefined
}): string => {
  const { contentSha256, deviceName, productKey, random, timestamp } = options
  const text = `productKey${productKey}deviceName${deviceName}random${random}`
  const withTime = timestamp === undefined ? text : `${text}timestamp${timestamp}`
  return contentSha256 === undefined ? withTime : `${withTime}contentSha256${contentSha256}`
}

/** The text that a device signs to get a triple that was created before; `mac` names the device. */
export const registerText = (options: {
  readonly mac: string
  readonly productKey: string
  readonly random: string
}): string => `mac${options.mac}productKey${options.productKey}random${options.random}`

/** The text that a device signs to register under its own name. */
export const generatorText = (options: {
  readonly deviceName: string
  readonly productKey: string
  readonly random: string
}): string => `deviceName${options.deviceName}productKey${options.productKey}random${options.random}`

/** Characters of a token: buffers of public SDKs hold 63. */
export const tokenLength = 62

/** The text whose MAC under the device's secret begins with the token of the device. */
export const tokenText = (options: {
  readonly clientId: string
  readonly deviceName: string
  readonly productKey: string
}): string => `deviceTokenclientId${options.clientId}deviceName${options.deviceName}productKey${options.productKey}`

/** The text whose MAC under the device's secret is part of its access token. `expires`: as the token writes it. */
export const accessTokenText = (options: {
  readonly deviceName: string
  readonly expires: string
  readonly productKey: string
}): string => `accessTokendeviceName${options.deviceName}expires${options.expires}productKey${options.productKey}`

/**
 * The text that a sub-device signs for its gateway, or a device for a mesh
 * network: the names and values of the fields, sorted by name.
 */
export const fieldsText = (fields: Readonly<Record<string, string>>): string =>
  Object.keys(fields).sort().map((name) => name + fields[name]).join("")
