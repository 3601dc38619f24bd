/**
 * Text that every store can keep and every protocol can carry.
 */
import { Schema } from "effect"

const wellFormedText = /^[^\0\p{Cs}]*$/u

/** Whether every store can keep it: without NUL characters and unpaired surrogates. */
export const isWellFormed = (text: string): boolean => wellFormedText.test(text)

const wellFormed = Schema.isPattern(wellFormedText, {
  expected: "text without NUL characters and unpaired surrogates"
})

/** Any text of at most `maxLength` UTF-16 code units, without NUL and unpaired surrogates. */
export const Text = (maxLength: number) => Schema.String.check(wellFormed, Schema.isMaxLength(maxLength))

/** As {@link Text}, with at least one character that is not white space. */
export const NonBlankText = (maxLength: number) =>
  Text(maxLength).check(Schema.isPattern(/\S/, { expected: "text that is not blank" }))
