/**
 * Bindings. A device that has joined reports a random, by which the application
 * that provisions the device recognizes it (docs/protocol/provisioning.md).
 */
import { Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { Text } from "../kernel/Text.ts"

/** The params of the report of a device that has joined. */
export const BindReport = Schema.Struct({
  /** 8 to 32 characters. */
  random: Text(32).check(Schema.isMinLength(8))
})
export interface BindReport extends Schema.Schema.Type<typeof BindReport> {}

/** The randoms of one device. */
export interface Binding {
  /** The random that the device has reported; null: none. */
  readonly reported: string | null
  /** The only random that counts until `until`, Unix milliseconds; null: every random counts. */
  readonly expected: { readonly random: string; readonly until: number } | null
}

/** The binding of a device that has not reported. */
export const unbound: Binding = { reported: null, expected: null }

/** How long only the random of the cloud counts, milliseconds. */
const expectedMillis = 600_000

/** Returns a binding for which only this random counts for ten minutes from `at`, Unix milliseconds. */
export const expectRandom = (random: string, at: number): Binding => ({
  reported: null,
  expected: { random, until: at + expectedMillis }
})

/** Returns the binding after a report at `at`, Unix milliseconds; undefined: another random is expected. */
export const reportRandom = (binding: Binding, random: string, at: number): Binding | undefined => {
  const expected = binding.expected !== null && at < binding.expected.until ? binding.expected : null
  return expected === null || expected.random === random ? { reported: random, expected } : undefined
}

/** The device has not reported the random yet. */
export class RandomNotReported extends DomainError<RandomNotReported>()(
  "RandomNotReported",
  {
    device: Schema.String
  },
  ({ device }) => `Device ${device} has not reported its random yet; ask again later`
) {}
