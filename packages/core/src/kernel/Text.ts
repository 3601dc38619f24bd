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
export const Text = (maxLength: number) =>
  Schema.String.check(wellFormed, Schema.isMaxLength(maxLength, { expected: `at most ${maxLength} characters` }))

/** Like {@link Text}, with at least one character that is not white space. */
export const NonBlankText = (maxLength: number) =>
  Text(maxLength).check(Schema.isPattern(/\S/u, { expected: "text that is not blank" }))

/** The beginning of a text, of at most `maxLength` UTF-16 code units. Half a character at its end is left out. */
export const beginning = (text: string, maxLength: number): string =>
  text.length > maxLength ? text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "") : text

/** Like {@link beginning}, as every store can keep it: U+FFFD takes the place of NUL characters and unpaired surrogates. */
export const keptBeginning = (text: string, maxLength: number): string =>
  beginning(text, maxLength).replace(/[\0\p{Cs}]/gu, "\uFFFD")

/** Characters that end or hide a part of a line: controls, line separators, marks of direction, unpaired surrogates. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/**
 * Text from outside as it may stand in a line of the log: it cannot forge another
 * line. Keeps at most 256 UTF-16 code units, and escapes unprintable characters,
 * for example `\u{a}`.
 */
export const printable = (text: string): string =>
  (text.length > 256 ? `${text.slice(0, 256)}…` : text)
    .replace(unprintable, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
