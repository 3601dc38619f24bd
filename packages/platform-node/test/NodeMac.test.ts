import { Mac, type SignMethod } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { aesCmac, aesCmacPrf128 } from "../src/NodeMac.ts"

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex")

layer(PlatformNode.layer)("message authentication codes", (it) => {
  const vectors: ReadonlyArray<readonly [secret: string, text: string, codes: Partial<Record<SignMethod, string>>]> = [
    ["secret", "clientId12345deviceNamedeviceproductKeypktimestamp789", {
      hmacmd5: "14b198324fe55e1d3c88f2e705e201ee",
      hmacsha1: "fafd82a3d602b37fb0fa8b7892f24a477f851a14",
      hmacsha256: "6074a46a91b1ebb2cc4ea42790ad0e80202c9843859fc292e57c4eb19fad9e57"
    }],
    ["secret", "clientId12345deviceNamedeviceproductKeypk", {
      hmacmd5: "2ce7304ec0ddd548eb1492d65ac0b334",
      hmacsha1: "3504e4df7ce4766d30f796ee973c9ce7fc5425cb",
      hmacsha256: "c8cb3dcb7159682438e5fd9a9c34f398e41bb8edb6f222795e307bafee151090"
    }],
    ["0123456789abcdef0123456789abcdef", "clientIddev001&a1PkDirect01deviceNamedev001productKeya1PkDirect01", {
      hmacmd5: "23fe7c89afa6cea6166901356f8cca84",
      hmacsha1: "ee73207bf9a902b3f5186d9439096816bde14632",
      hmacsha256: "5d54a7ac6df42c697dc492c2690cf5db007caf7766d97205690ff12e2471d7f4",
      aescmac: "9ce2bd3d5c627cd4fcee76eeb3ebb7e5"
    }]
  ]

  it.effect("agree with the published vectors of the protocol", () =>
    Effect.gen(function*() {
      const mac = yield* Mac
      for (const [secret, text, codes] of vectors) {
        for (const [method, code] of Object.entries(codes)) {
          assert.strictEqual(mac.sign(method as SignMethod, secret, text), code)
        }
      }
    }))
})

describe("AES-CMAC", () => {
  const key = hex("2b7e151628aed2a6abf7158809cf4f3c")
  const message = hex(
    "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51 30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710"
  )

  it.each([
    [0, "bb1d6929e95937287fa37d129b756746"],
    [16, "070a16b46b4d4144f79bdd9dd04a287c"],
    [40, "dfa66747de9ae63030ca32611497c827"],
    [64, "51f0bebf7e3b9d92fc49741779363cfe"]
  ])("agrees with RFC 4493 on %i bytes", (length, expected) => {
    assert.strictEqual(aesCmac(key, message.subarray(0, length)).toString("hex"), expected)
  })

  it.each([
    ["000102030405060708090a0b0c0d0e0fedcb", "84a348a4a45d235babfffc0d2b4da09a"],
    ["000102030405060708090a0b0c0d0e0f", "980ae87b5f4c9c5214f5b6a8455e4c2d"],
    ["00010203040506070809", "290d9e112edb09ee141fcf64c0b72f3d"]
  ])("agrees with RFC 4615 under the key %s", (variableKey, expected) => {
    const text = hex("000102030405060708090a0b0c0d0e0f10111213")
    assert.strictEqual(aesCmacPrf128(hex(variableKey), text).toString("hex"), expected)
  })
})
