/**
 * What an access key may do: its role, and what narrows it
 * (docs/decisions/0058-scopes-of-access-keys.md).
 */
import { Schema } from "effect"
import { isInRange, parseAddress, parseRange } from "../kernel/NetworkAddress.ts"
import { Text } from "../kernel/Text.ts"
import { type Role, roleIncludes } from "./Role.ts"

/** Entries in a list of a scope, at most. */
const maxEntries = 100

const entries = <S extends Schema.Top>(entry: S) => Schema.NonEmptyArray(entry).check(Schema.isMaxLength(maxEntries))

/** What a key may touch. An absent list narrows nothing. */
export const KeyScopes = Schema.Struct({
  /** Keys of products. */
  products: Schema.optional(entries(Text(128))),
  /** For example `devices:read`: a group of the API, and `read` (GET) or `write` (all others). */
  actions: Schema.optional(
    entries(
      Schema.String.check(
        Schema.isPattern(/^[A-Za-z][A-Za-z-]{0,63}:(?:read|write)$/u, {
          expected: "a group of the API and read or write, for example devices:read"
        })
      )
    )
  )
})
export interface KeyScopes extends Schema.Schema.Type<typeof KeyScopes> {}

/** Networks from which a key may be used, such as `192.0.2.0/24` or `2001:db8::/32`, or single addresses. */
export const AddressRanges = entries(
  Schema.String.check(
    Schema.makeFilter((text) => text.length <= 64 && parseRange(text) !== undefined, {
      expected: "an IPv4 or IPv6 address, or a network such as 192.0.2.0/24"
    })
  )
)

/** The rights of a key. */
export interface KeyRights {
  readonly role: Role
  readonly scopes: KeyScopes
  /** Null: from everywhere. */
  readonly addresses: ReadonlyArray<string> | null
  /** Unix milliseconds; null: for ever. */
  readonly expiresAt: number | null
}

/** The rights of a new key as its creator asks for them; what is absent is as the creator's own. */
export interface AskedRights {
  readonly role: Role
  readonly scopes?: KeyScopes | undefined
  readonly addresses?: ReadonlyArray<string> | undefined
  readonly expiresAt?: number | undefined
}

/** The rights of a new key, or the name of the field that asks for more than the creator has. */
export const grant = (asked: AskedRights, creator: KeyRights | undefined): KeyRights | { readonly exceeds: string } => {
  const { addresses = creator?.addresses ?? null, expiresAt = creator?.expiresAt ?? null, role, scopes } = asked
  const products = scopes?.products ?? creator?.scopes.products
  const actions = scopes?.actions ?? creator?.scopes.actions
  if (creator !== undefined) {
    if (!roleIncludes(creator.role, role)) return { exceeds: "role" }
    if (!isSubset(products, creator.scopes.products)) return { exceeds: "scopes.products" }
    if (!isSubset(actions, creator.scopes.actions)) return { exceeds: "scopes.actions" }
    if (creator.addresses !== null && !addresses!.every((range) => isWithin(range, creator.addresses!))) {
      return { exceeds: "addresses" }
    }
    if (creator.expiresAt !== null && expiresAt! > creator.expiresAt) return { exceeds: "expiresAt" }
  }
  return {
    role,
    scopes: { ...products === undefined ? {} : { products }, ...actions === undefined ? {} : { actions } },
    addresses,
    expiresAt
  }
}

/** Whether a key may be used from an address. */
export const admitsAddress = ({ addresses }: KeyRights, address: string): boolean => {
  if (addresses === null) return true
  const bytes = parseAddress(address)
  return bytes !== undefined && addresses.some((range) => {
    const parsed = parseRange(range)
    return parsed !== undefined && isInRange(bytes, parsed)
  })
}

const isSubset = (some: ReadonlyArray<string> | undefined, all: ReadonlyArray<string> | undefined): boolean =>
  all === undefined || some !== undefined && some.every((entry) => all.includes(entry))

const isWithin = (range: string, ranges: ReadonlyArray<string>): boolean => {
  const inner = parseRange(range)
  return inner !== undefined && ranges.some((each) => {
    const outer = parseRange(each)
    return outer !== undefined && outer.bits <= inner.bits && isInRange(inner.bytes, outer)
  })
}
