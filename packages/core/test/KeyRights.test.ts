import { admitsAddress, type KeyRights } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { grant } from "../src/project/KeyRights.ts"

const all: KeyRights = { role: "admin", scopes: {}, addresses: null, expiresAt: null }

it("a key gives the rights that it has, and no more", () => {
  const creator: KeyRights = {
    role: "operator",
    scopes: { products: ["a", "b"], actions: ["devices:read", "devices:write"] },
    addresses: ["192.0.2.0/24", "2001:db8::/32"],
    expiresAt: 1000
  }
  // What is not asked for is as the creator's.
  assert.deepStrictEqual(grant({ role: "viewer" }, creator), { ...creator, role: "viewer" })
  const narrower = {
    role: "operator",
    scopes: { products: ["b"], actions: ["devices:read"] },
    addresses: ["192.0.2.7", "192.0.2.128/25", "2001:db8:1::/48"],
    expiresAt: 999
  } as const
  assert.deepStrictEqual(grant(narrower, creator), narrower)
  for (
    const [asked, exceeds] of [
      [{ role: "admin" }, "role"],
      [{ scopes: { products: ["a", "c"] } }, "scopes.products"],
      [{ scopes: { actions: ["products:read"] } }, "scopes.actions"],
      [{ addresses: ["192.0.3.1"] }, "addresses"],
      [{ addresses: ["192.0.2.0/23"] }, "addresses"],
      [{ addresses: ["0.0.0.0/0"] }, "addresses"],
      [{ addresses: ["::/0"] }, "addresses"],
      [{ expiresAt: 1001 }, "expiresAt"]
    ] as const
  ) {
    assert.deepStrictEqual(grant({ role: "viewer", ...asked } as Parameters<typeof grant>[0], creator), { exceeds })
  }
  assert.deepStrictEqual(grant(narrower, all), narrower)
  assert.deepStrictEqual(grant({ role: "admin" }, undefined), all)
})

it("a key is used from its addresses only", () => {
  const limited = { ...all, addresses: ["192.0.2.0/24", "2001:db8::/32", "203.0.113.9"] }
  for (const address of ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201", "2001:db8:ffff::1", "203.0.113.9"]) {
    assert.isTrue(admitsAddress(limited, address), address)
  }
  for (const address of ["192.0.3.1", "2001:db9::1", "203.0.113.90", "", "unknown", "192.0.2"]) {
    assert.isFalse(admitsAddress(limited, address), address)
  }
  assert.isTrue(admitsAddress(all, ""))
})
