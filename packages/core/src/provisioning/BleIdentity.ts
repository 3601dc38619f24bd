/**
 * The proof by which an application recognizes a device over Bluetooth
 * (docs/protocol/provisioning.md).
 */
import { Schema } from "effect"
import { Hex } from "effect/encoding"
import { DomainError } from "../kernel/DomainError.ts"
import type { Mac } from "../kernel/Mac.ts"
import { Text } from "../kernel/Text.ts"

const Bytes16 = Schema.String.check(Schema.isPattern(/^[0-9A-Fa-f]{32}$/u, { expected: "32 hex digits" }))

/** The random that an application has sent to a device, and the cipher that the device has returned. */
export const BleProof = Schema.Struct({
  deviceName: Text(128).pipe(Schema.brand("DeviceName")),
  /** 16 bytes, hex of either case. */
  random: Bytes16,
  /** 16 bytes, hex of either case. */
  cipher: Bytes16
})
export interface BleProof extends Schema.Schema.Type<typeof BleProof> {}

/** The initialization vector, which is the same for all devices of this protocol. */
const initialization = new TextEncoder().encode("123aqwed#*$!(4ju")

/**
 * Returns the cipher of a device for 16 random bytes, and `bleKey`, which
 * protects the traffic from then on. Both are lower-case hex.
 */
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

/** The cipher is not the one that the device returns for this random. */
export class WrongCipher extends DomainError<WrongCipher>()(
  "WrongCipher",
  {
    productKey: Schema.String,
    deviceName: Schema.String
  },
  ({ deviceName, productKey }) =>
    `The cipher is not what ${deviceName} of product ${productKey} would make of the random`
) {}
