/**
 * Fields whose text stands for more than itself: lists, and objects as JSON.
 */
import { useTexts } from "../text/text.ts"
import { AreaField, type FieldProps } from "./Form.tsx"

/** What stands in a text one on each line, or between spaces. */
export const listOf = (text: string): ReadonlyArray<string> => text.split(/[\s,]+/).filter((item) => item !== "")

/** Tags in a text, one `key:value` on each line; undefined: a line is none, or a key stands there twice. */
export const tagsOf = (text: string): Readonly<Record<string, string>> | undefined => {
  const tags: Record<string, string> = {}
  for (const line of text.split("\n").map((line) => line.trim()).filter((line) => line !== "")) {
    const [key = "", ...value] = line.split(":").map((part) => part.trim())
    if (key === "" || value.length === 0 || Object.hasOwn(tags, key)) return undefined
    tags[key] = value.join(":")
  }
  return tags
}

/** Reads JSON. Throws a `RangeError` if a number is too large: it would be sent as null, or as its neighbour. */
export const parseJson = (text: string): unknown =>
  // Older browsers do not say how a number was written.
  JSON.parse(text, (_, value: unknown, { source }: { readonly source?: string } = {}) => {
    if (value === Infinity || value === -Infinity) throw new RangeError()
    const isRounded = typeof value === "number" && source !== undefined && /^-?\d+$/.test(source) &&
      BigInt(source) !== BigInt(value)
    if (isRounded) throw new RangeError()
    return value
  })

/** Whether a text is no JSON only because a number in it is too large. */
export const hasLargeNumber = (text: string): boolean => {
  try {
    parseJson(text)
    return false
  } catch (error) {
    return error instanceof RangeError
  }
}

/** The object that a text is as JSON; undefined: it is none. */
export const objectOf = (text: string): Readonly<Record<string, never>> | undefined => {
  try {
    const value = parseJson(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Readonly<Record<string, never>>
      : undefined
  } catch {
    return undefined
  }
}

interface TextProps extends FieldProps {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly rows?: number
  readonly holdsForm?: boolean
}

/** Ids, one on each line. */
export const ListField = (field: TextProps) => <AreaField rows={3} {...field} />

/** Tags, one `key:value` on each line. */
export const TagsField = (field: TextProps) => {
  const { common } = useTexts()
  return (
    <AreaField
      rows={3}
      {...field}
      hint={common.tagsHint}
      issue={tagsOf(field.value) === undefined ? common.notTags : undefined}
    />
  )
}

/** An object as JSON. */
export const ObjectField = (field: TextProps) => {
  const { common } = useTexts()
  const issue = hasLargeNumber(field.value) ? common.numberTooLarge : common.notAnObject
  return <AreaField {...field} issue={objectOf(field.value) === undefined ? issue : undefined} />
}
