/**
 * The probabilities of faults.
 */

/** Returns `value`. Throws a `TypeError` that names `field` if it is no probability. */
export const probability = (field: string, value: number): number => {
  if (!(value >= 0 && value <= 1)) throw new TypeError(`${field}: expected a number from 0 to 1, not ${value}`)
  return value
}
