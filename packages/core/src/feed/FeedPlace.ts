/**
 * The text of places in the feed. Pure.
 *
 * A place has three numbers in base 36, each with leading zeros, so that places
 * compare as text. Stores choose the numbers; for others a place is opaque.
 */
import { Option } from "effect"
import type { FeedPlace } from "./FeedStore.ts"

/** Whole numbers below 2^53, in the order in which they count; `part` is below 36^5. */
export interface PlaceNumbers {
  readonly transaction: number
  readonly sequence: number
  readonly part: number
}

/** Digits of a number below 2^53. */
const width = 11
const partWidth = 5

const digits = (number: number, width: number): string => number.toString(36).padStart(width, "0")

export const placeOf = ({ part, sequence, transaction }: PlaceNumbers): FeedPlace =>
  digits(transaction, width) + digits(sequence, width) + digits(part, partWidth)

const pattern = /^[0-9a-z]{27}$/

/** Returns the numbers of a place; for the start of the feed, zeros; none: the text is not a place. */
export const parsePlace = (text: string): Option.Option<PlaceNumbers> => {
  if (text === "") return Option.some({ transaction: 0, sequence: 0, part: 0 })
  if (!pattern.test(text)) return Option.none()
  const transaction = Number.parseInt(text.slice(0, width), 36)
  const sequence = Number.parseInt(text.slice(width, 2 * width), 36)
  return Number.isSafeInteger(transaction) && Number.isSafeInteger(sequence)
    ? Option.some({ transaction, sequence, part: Number.parseInt(text.slice(2 * width), 36) })
    : Option.none()
}

/** Whether the text has the form of a place. */
export const isFeedPlace = (text: string): boolean => Option.isSome(parsePlace(text))
