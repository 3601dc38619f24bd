/**
 * Whether the device at the other end of a Bluetooth connection is the one that
 * it says it is (decisions, section 13; alink-facts, section 8.1).
 */
import { Schema } from "effect"
import { Hex } from "effect/encoding"
import type { Mac } from "../kernel/Mac.ts"
import { Text } from "../kernel/Text.ts"

const Bytes16 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/i, { expected: "32 hex digits" }))

/** What an application has sent to a device, and what the device made of it. */
export const BleProof = Schema.Struct({
  deviceName: Text(128).pipe(Schema.brand("DeviceName")),
  /** 16 bytes, hex of either case. */
  random: Bytes16,
  /** 16 bytes, hex of either case. */
  cipher: Bytes16
})
export interface BleProof extends Schema.Schema.Type<typeof BleProof> {}

/** The initialization vector of the whole protocol family. */
const initialization = new TextEncoder().encode("123aqwed#*$!(4ju")

/** What a device makes of 16 bytes, as lower-case hex; `bleKey` protects what it exchanges from then on. */
export const bleAnswer = (
  mac: Mac["Service"],
  { deviceName, deviceSecret, productKey }: {
    readonly productKey: string
    readonly deviceName: string
    readonly deviceSecret: string
  },
  random: Uint8Array
): { readonly bleKey: string; readonly cipher: string } => {
  const names = new TextEncoder().encode(`,${productKey},${deviceName},${deviceSecret}`)
  const key = mac.sha256(Uint8Array.of(...random, ...names)).subarray(0, 16)
  return { bleKey: Hex.encode(key), cipher: Hex.encode(mac.aes128Cbc(key, initialization, random)) }
}

/** The cipher is not what the device would make of the random. */
export class WrongCipher extends Schema.TaggedError<WrongCipher>()("WrongCipher", {
  productKey: Schema.String,
  deviceName: Schema.String
}) {}
