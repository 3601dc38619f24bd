/**
 * Certificate requests (PKCS #10), as a device makes them.
 */
import { type KeyObject, sign } from "node:crypto"
import { contextTag, sequence, Tag, write, writeBits, writeOid } from "../src/Der.ts"

/** The algorithm of the signature by the type of the key: object identifier and digest. */
const algorithms: Readonly<Record<string, readonly [string, string | null]>> = {
  ec: ["1.2.840.10045.4.3.2", "sha256"],
  rsa: ["1.2.840.113549.1.1.11", "sha256"],
  ed25519: ["1.3.101.112", null]
}

/** A request of `CN=unit` in PEM. */
export const request = (
  { privateKey, publicKey }: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
) => {
  const [oid, digest] = algorithms[privateKey.asymmetricKeyType!]!
  const name = sequence(write(Tag.set, sequence(writeOid("2.5.4.3"), write(Tag.utf8, Buffer.from("unit")))))
  const content = sequence(
    write(Tag.integer, Buffer.of(0)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    write(contextTag(0))
  )
  const signed = sequence(content, sequence(writeOid(oid)), writeBits(sign(digest, content, privateKey)))
  return `-----BEGIN CERTIFICATE REQUEST-----\n${signed.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`
}
