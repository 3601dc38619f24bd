/** `text vectors {secret}`: texts and names of the pages with the codes that devices compute of them, computed again. */
import { execFileSync } from "node:child_process"
import { createCipheriv, createHash, createHmac } from "node:crypto"
import type { Block } from "./Blocks.ts"

/** Returns the AES-CMAC (RFC 4493) in hex, as OpenSSL makes it. */
const aesCmac = (key: string, text: string): string =>
  execFileSync("openssl", ["mac", "-cipher", "AES-128-CBC", "-macopt", `hexkey:${key}`, "CMAC"], {
    input: text,
    encoding: "utf8"
  }).trim().toLowerCase()

const codeOf = (algorithm: string, secret: string, text: string): string => {
  if (algorithm !== "aescmac") {
    return createHmac(algorithm.toLowerCase().replace("hmac", ""), secret).update(text).digest("hex")
  }
  const hex = Buffer.from(secret).toString("hex")
  return aesCmac(hex.length === 32 ? hex : aesCmac("00".repeat(16), secret), text)
}

/** The BLE identity of a device: the key, and the cipher of the random bytes under it. */
export const bleIdentity = (random: string, productKey: string, deviceName: string, deviceSecret: string) => {
  const bytes = Buffer.from(random, "hex")
  const key = createHash("sha256").update(bytes).update(`,${productKey},${deviceName},${deviceSecret}`).digest()
    .subarray(0, 16)
  const cipher = createCipheriv("aes-128-cbc", key, "123aqwed#*$!(4ju").update(bytes).toString("hex")
  return { ble_key: key.toString("hex"), cipher }
}

/** Returns what the last lines lead to under a name, or undefined for a name that is given. */
const expected = (name: string, secret: string, known: Readonly<Record<string, string>>): string | undefined => {
  const { code = "", names = "", random = "", text = "" } = known
  if (/^(hmac|aescmac)/.test(name)) return codeOf(name, secret, text)
  if (name === "base64") return Buffer.from(code, "hex").toString("base64")
  if (name === "in a URL") return encodeURIComponent(Buffer.from(code, "hex").toString("base64"))
  if (name !== "ble_key" && name !== "cipher") return undefined
  const [productKey = "", deviceName = "", deviceSecret = ""] = names.split(", ")
  return bleIdentity(random, productKey, deviceName, deviceSecret)[name]
}

/** Returns what the blocks have wrong, with the lines of their pages. */
export const broken = (blocks: ReadonlyArray<Block>): ReadonlyArray<string> =>
  blocks.filter(({ does, language }) => language === "text" && /^vectors\b/.test(does)).flatMap((block) => {
    const [, secret = ""] = block.does.split(" ")
    const known: Record<string, string> = {}
    return block.text.split("\n").flatMap((row, index) => {
      const [, name = "", value = ""] = /^\s*(\S.*?)\s{2,}(.*)$/.exec(row) ?? []
      known[name] = value
      if (/^(hmac|aescmac)/.test(name)) known["code"] = value
      const right = expected(name, secret, known)
      return right === undefined || right === value
        ? []
        : [`${block.page}:${block.line + 1 + index}: ${name} is ${right}`]
    })
  })
