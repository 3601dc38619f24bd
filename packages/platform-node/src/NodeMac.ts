/**
 * The cryptographic functions of the core, with `node:crypto`.
 */
import { Mac, type SignMethod } from "@device-cloud/core"
import { Layer } from "effect"
import { createCipheriv, createHmac, hash } from "node:crypto"

const hmacHash = { hmacmd5: "md5", hmacsha1: "sha1", hmacsha256: "sha256" } as const

const sign = (method: SignMethod, secret: string, text: string): string =>
  method === "aescmac"
    ? aesCmacPrf128(Buffer.from(secret), Buffer.from(text)).toString("hex")
    : createHmac(hmacHash[method], secret).update(text).digest("hex")

const blockSize = 16
const zeroBlock = Buffer.alloc(blockSize)

/** AES-CMAC-PRF-128 (RFC 4615): AES-CMAC under a key of any length. */
export const aesCmacPrf128 = (key: Uint8Array, message: Uint8Array): Buffer =>
  aesCmac(key.length === blockSize ? key : aesCmac(new Uint8Array(blockSize), key), message)

/** AES-CMAC (RFC 4493) under a key of 16 bytes. */
export const aesCmac = (key: Uint8Array, message: Uint8Array): Buffer => {
  const subkey1 = double(aes128Cbc(key, zeroBlock, zeroBlock))
  const blocks = Math.max(1, Math.ceil(message.length / blockSize))
  const complete = message.length === blocks * blockSize
  const padded = Buffer.alloc(blocks * blockSize)
  padded.set(message)
  if (!complete) padded[message.length] = 0x80
  const subkey = complete ? subkey1 : double(subkey1)
  const lastBlock = padded.subarray(-blockSize)
  for (let i = 0; i < blockSize; i++) lastBlock[i]! ^= subkey[i]!
  return aes128Cbc(key, zeroBlock, padded).subarray(-blockSize)
}

const aes128Cbc = (key: Uint8Array, initialization: Uint8Array, blocks: Uint8Array): Buffer =>
  createCipheriv("aes-128-cbc", key, initialization).setAutoPadding(false).update(blocks)

/** Multiplies by x in GF(2^128) (RFC 4493, section 2.3). */
const double = (block: Uint8Array): Buffer => {
  const doubled = Buffer.alloc(blockSize)
  for (let i = 0; i < blockSize; i++) doubled[i] = (block[i]! << 1) | ((block[i + 1] ?? 0) >> 7)
  if (block[0]! & 0x80) doubled[blockSize - 1]! ^= 0x87
  return doubled
}

const sha256 = (bytes: Uint8Array): Buffer => hash("sha256", bytes, "buffer")

export const layer: Layer.Layer<Mac> = Layer.succeed(Mac, { sign, sha256, aes128Cbc })
