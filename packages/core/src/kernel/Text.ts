/**
 * Text that every store can keep and every protocol can carry.
 */
import { Schema } from "effect"

const wellFormedText = /^[^\0\p{Cs}]*$/u

/** Whether every store can keep the text: no NUL characters and no unpaired surrogates. */
export const isWellFormed = (text: string): boolean => wellFormedText.test(text)

const wellFormed = Schema.isPattern(wellFormedText, {
  expected: "text without NUL characters and unpaired surrogates"
})

/** Text of at most `maxLength` UTF-16 code units, without NUL characters and unpaired surrogates. */
export const Text = (maxLength: number) => Schema.String.check(wellFormed, Schema.isMaxLength(maxLength))

/** Like {@link Text}, with at least one character that is not white space. */
export const NonBlankText = (maxLength: number) =>
  Text(maxLength).check(Schema.isPattern(/\S/, { expected: "text that is not blank" }))
