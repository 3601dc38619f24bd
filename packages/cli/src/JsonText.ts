/**
 * JSON that a user has written.
 */

/** Reads it. Throws a `RangeError` if a number is too large: it would be sent as null. */
export const parseJson = (text: string): unknown =>
  JSON.parse(text, (_, value: unknown) => {
    if (value === Infinity || value === -Infinity) throw tooLarge()
    return value
  })

/** Reads it. Throws a `RangeError` also if a whole number would be sent as its neighbour. */
export const parseExactly = (text: string): unknown => {
  const value = parseJson(text)
  if (wholeNumbers(text).some((number) => BigInt(number) !== BigInt(Number(number)))) throw tooLarge()
  return value
}

const tooLarge = () => new RangeError("A number is too large to be sent as it is")

/** The whole numbers of a JSON text, as they are written. Node.js 20 does not tell a reviver how a number was written. */
const wholeNumbers = (text: string): ReadonlyArray<string> =>
  text.replaceAll(/"(?:[^"\\]|\\.)*"/g, `""`).match(/(?<![\w.+-])-?\d+(?![\w.])/g) ?? []
