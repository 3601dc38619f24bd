/**
 * How an application finds out that the device which it provisions has joined:
 * by a random that the device reports (specification, Devices: bind;
 * decisions, section 13).
 */
import { Schema } from "effect"
import { Text } from "../kernel/Text.ts"

/** What a device reports after it has joined. */
export const BindReport = Schema.Struct({
  /** 8 to 32 characters. */
  random: Text(32).check(Schema.isMinLength(8))
})
export interface BindReport extends Schema.Schema.Type<typeof BindReport> {}

/** What is known of a device's joining. */
export interface Binding {
  /** What the device has reported; null: nothing. */
  readonly reported: string | null
  /** The one random that counts; null: any does. */
  readonly expected: { readonly random: string; readonly until: number } | null
}

export const unbound: Binding = { reported: null, expected: null }

/** How long a random that the cloud has made is the only one that counts, milliseconds. */
const expectedMillis = 600_000

/** From `at` (Unix milliseconds) on only this random counts, for ten minutes. */
export const expectRandom = (random: string, at: number): Binding => ({
  reported: null,
  expected: { random, until: at + expectedMillis }
})

/** The device reports a random at `at` (Unix milliseconds); undefined: another one is expected. */
export const reportRandom = (binding: Binding, random: string, at: number): Binding | undefined => {
  const expected = binding.expected !== null && at < binding.expected.until ? binding.expected : null
  return expected === null || expected.random === random ? { reported: random, expected } : undefined
}

/** The device has not reported the random yet. */
export class RandomNotReported extends Schema.TaggedError<RandomNotReported>()("RandomNotReported", {
  device: Schema.String
}) {}
