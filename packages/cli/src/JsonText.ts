/**
 * JSON that a user has written.
 */

/** Reads it. Throws a `RangeError` if a number is too large: it would be sent as null. */
export const parseJson = (text: string): unknown =>
  JSON.parse(text, (_, value: unknown) => {
    if (value === Infinity || value === -Infinity) throw new RangeError("A number is too large")
    return value
  })
