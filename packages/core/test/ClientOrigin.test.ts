import { addressGroup, clientOrigin, parseTrustedProxies } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Result } from "effect"

const proxies = Result.getOrThrow(parseTrustedProxies(["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", " ::1 "]))

const from = (address: string, header?: string, proto?: string) =>
  clientOrigin({ address, isSecure: false }, { for: header, proto }, proxies)

const addressOf = (address: string, header?: string) => from(address, header).address

it("an address that is no trusted proxy counts itself, whatever it says", () => {
  assert.strictEqual(addressOf("203.0.113.9", "198.51.100.1"), "203.0.113.9")
  assert.strictEqual(addressOf("192.0.2.2", "198.51.100.1"), "192.0.2.2")
  assert.strictEqual(addressOf("2001:db9::1", "198.51.100.1"), "2001:db9::1")
  assert.strictEqual(addressOf("::ffff:203.0.113.9"), "203.0.113.9")
  assert.strictEqual(addressOf(""), "")
  assert.isFalse(from("203.0.113.9", undefined, "https").isSecure)
})

it("behind trusted proxies the last entry that is none of them is the client", () => {
  assert.strictEqual(addressOf("10.1.2.3"), "10.1.2.3")
  assert.strictEqual(addressOf("10.1.2.3", "198.51.100.1"), "198.51.100.1")
  assert.strictEqual(addressOf("::ffff:10.1.2.3", "198.51.100.1"), "198.51.100.1")
  assert.strictEqual(addressOf("::1", "6.6.6.6, 198.51.100.1, 10.9.9.9 , 192.0.2.1"), "198.51.100.1")
  assert.strictEqual(addressOf("10.1.2.3", "10.0.0.1,10.0.0.2"), "10.0.0.1")
})

it("entries may have ports and brackets; one that is no address ends the search", () => {
  assert.strictEqual(addressOf("10.1.2.3", "198.51.100.1:4711"), "198.51.100.1")
  assert.strictEqual(addressOf("10.1.2.3", "[2001:DB9::1]:443"), "2001:db9::1")
  assert.strictEqual(addressOf("10.1.2.3", "[2001:db9::1]"), "2001:db9::1")
  assert.strictEqual(addressOf("10.1.2.3", "2001:db9::1"), "2001:db9::1")
  assert.strictEqual(addressOf("10.1.2.3", "[::ffff:198.51.100.1]:80"), "198.51.100.1")
  assert.strictEqual(addressOf("10.1.2.3", "[::FFFF:c633:6401]"), "198.51.100.1")
  assert.strictEqual(addressOf("10.1.2.3", "198.51.100.1, 0:0:0:0:0:ffff:a09:909"), "198.51.100.1")
  assert.strictEqual(addressOf("10.1.2.3", "fe80::1%eth0"), "fe80::1")
  for (
    const malformed of [
      "",
      "unknown",
      "198.51.100.1, _hidden",
      "198.51.100.1,",
      "198.51.100.1,10.0.0.256",
      "1.2.3",
      "01.2.3.4",
      "[1",
      "1::2::3",
      "1:2:3:4:5:6:7",
      "1:2:3:4:5:6:7:8:9",
      "::12345",
      "1.2.3.4:port",
      "x".repeat(100_000)
    ]
  ) {
    assert.strictEqual(addressOf("10.1.2.3", malformed), "10.1.2.3", malformed.slice(0, 40))
  }
  assert.strictEqual(addressOf("10.1.2.3", `6.6.6.6,bad,10.0.0.7`), "10.0.0.7")
  // Of a long header only the end counts.
  assert.strictEqual(addressOf("10.1.2.3", `6.6.6.6${",10.0.0.7".repeat(1000)}`), "10.0.0.7")
})

it("the way is secure if each proxy says so", () => {
  for (
    const [proto, expected] of [["https", true], ["wss", true], ["HTTPS , https", true], ["http", false], [
      "https,http",
      false
    ], ["", false]] as const
  ) {
    assert.strictEqual(from("10.1.2.3", undefined, proto).isSecure, expected, proto)
  }
  assert.isTrue(
    clientOrigin({ address: "10.0.0.1", isSecure: true }, { for: undefined, proto: undefined }, []).isSecure
  )
})

it("proxies are addresses or networks; any other text is named", () => {
  for (const wrong of ["proxy", "10.0.0.0/33", "10.0.0.0/", "::/129", "10.0.0.0/8/8", "", "10.0.0/8"]) {
    assert.deepStrictEqual(parseTrustedProxies(["10.0.0.1", wrong]), Result.fail(wrong))
  }
  const odd = Result.getOrThrow(parseTrustedProxies(["10.128.0.0/9", "0.0.0.0/0"]))
  assert.strictEqual(
    clientOrigin({ address: "10.200.0.1", isSecure: false }, { for: "1.1.1.1", proto: undefined }, [odd[0]!]).address,
    "1.1.1.1"
  )
  assert.strictEqual(
    clientOrigin({ address: "10.1.0.1", isSecure: false }, { for: "1.1.1.1", proto: undefined }, [odd[0]!]).address,
    "10.1.0.1"
  )
})

it("addresses of one IPv6 network of 64 bits are one party", () => {
  assert.strictEqual(addressGroup("2001:db8:1:2::7"), "2001:db8:1:2::/64")
  assert.strictEqual(addressGroup("2001:0DB8:1:2:ffff::7"), "2001:db8:1:2::/64")
  assert.strictEqual(addressGroup("fe80::1%eth0"), "fe80:0:0:0::/64")
  assert.strictEqual(addressGroup("::ffff:192.0.2.1"), "192.0.2.1")
  assert.strictEqual(addressGroup("::ffff:c000:201"), "192.0.2.1")
  assert.strictEqual(addressGroup("::fffe:c000:201"), "0:0:0:0::/64")
  assert.strictEqual(addressGroup("192.0.2.1"), "192.0.2.1")
  assert.strictEqual(addressGroup("gateway:1"), "gateway:1")
})
