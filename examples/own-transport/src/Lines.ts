/**
 * The wire: JSON, one document on a line, in both directions.
 */
import { DeviceName, ProductKey } from "@device-cloud/core"
import { Schema } from "effect"
import type { Socket } from "node:net"

/** The first line of a device. `sign`: HMAC-SHA-256 as of a CONNECT, with the client id `line`, in hex. */
export const Hello = Schema.fromJsonString(
  Schema.Struct({ productKey: ProductKey, deviceName: DeviceName, sign: Schema.String })
)

/** Every other line of a device: a message with an id of its own, or the confirmation of a message of the cloud, by its number. */
export const FromDevice = Schema.fromJsonString(Schema.Union([
  Schema.Struct({ id: Schema.Int, method: Schema.String, params: Schema.Json }),
  Schema.Struct({ confirms: Schema.Int })
]))

/** A line of the cloud. */
export type FromCloud =
  | { readonly welcome: true }
  | { readonly refused: string }
  | { readonly reply: number; readonly code: number; readonly message: string; readonly data: Schema.Json }
  | { readonly number: number; readonly id: string; readonly method: string; readonly params: Schema.Json }

/** Characters of a line, at most. */
const longest = 65_536

/** Reads a line when it is asked for the next one: a device that sends faster than that waits. Fails at a line that is too long. */
export async function* linesOf(socket: Socket): AsyncGenerator<string> {
  let rest = ""
  for await (const chunk of socket.setEncoding("utf8")) {
    const lines = (rest + chunk).split("\n")
    rest = lines.pop()!
    if (rest.length > longest) throw new Error(`A line has more than ${longest} characters`)
    yield* lines
  }
}
