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

/** Equality in a time that depends on the lengths only. */
export const equalInConstantTime = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
