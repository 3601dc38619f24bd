/**
 * The answer no, of a device to the cloud or of the cloud to a device.
 */
import { Schema } from "effect"

/** A device, or the cloud, says no. Codes of devices are 100000 to 110000; 200 is none. */
export class Refusal extends Schema.TaggedError<Refusal>()("Refusal", {
  code: Schema.Finite,
  reason: Schema.String
}) {
  override get message(): string {
    return `${this.code}: ${this.reason}`
  }
}
