/**
 * Quotas: how much a project may have (docs/api/quotas.md).
 */
import { Context, Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"

/** What a project has, counted. `objectBytes`: bytes of all uploaded files together. */
export const QuotaName = Schema.Literals([
  "products",
  "devices",
  "deviceGroups",
  "accessKeys",
  "scenes",
  "jobs",
  "subscriptions",
  "objectBytes"
])
export type QuotaName = typeof QuotaName.Type

const Limit = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

/** Limits of a project. */
export const QuotaLimits = Schema.Struct({
  products: Limit,
  devices: Limit,
  deviceGroups: Limit,
  accessKeys: Limit,
  scenes: Limit,
  jobs: Limit,
  subscriptions: Limit,
  /** Bytes. */
  objectBytes: Limit,
  /** Registrations with the secret of one product that succeed in a minute of the clock. */
  registrationsPerMinute: Limit
})
export type QuotaLimits = typeof QuotaLimits.Type

/** The names of all limits. */
export const limitNames = Object.keys(QuotaLimits.fields) as ReadonlyArray<keyof QuotaLimits>

/** Limits to set; null: the default again. */
export const QuotaChange = Schema.Struct({
  products: Schema.optional(Schema.NullOr(Limit)),
  devices: Schema.optional(Schema.NullOr(Limit)),
  deviceGroups: Schema.optional(Schema.NullOr(Limit)),
  accessKeys: Schema.optional(Schema.NullOr(Limit)),
  scenes: Schema.optional(Schema.NullOr(Limit)),
  jobs: Schema.optional(Schema.NullOr(Limit)),
  subscriptions: Schema.optional(Schema.NullOr(Limit)),
  objectBytes: Schema.optional(Schema.NullOr(Limit)),
  registrationsPerMinute: Schema.optional(Schema.NullOr(Limit))
})
export type QuotaChange = typeof QuotaChange.Type

/** The limits of projects that have none of their own. */
export const DefaultQuotas = Context.Reference<QuotaLimits>("@device-cloud/core/project/DefaultQuotas", {
  defaultValue: () => ({
    products: 10_000,
    devices: 1_000_000,
    deviceGroups: 1000,
    accessKeys: 1000,
    scenes: 10_000,
    jobs: 10_000,
    subscriptions: 100,
    objectBytes: 100 * 1024 ** 3,
    registrationsPerMinute: 10_000
  })
})

/** The project would have more than its quota admits; nothing was stored. */
export class QuotaExceeded extends DomainError<QuotaExceeded>()(
  "QuotaExceeded",
  {
    quota: QuotaName,
    limit: Schema.Int
  },
  ({ limit, quota }) => `The project may have ${limit} of ${quota}`
) {}

/** The product has had too many registrations in this minute. */
export class TooManyRegistrations extends DomainError<TooManyRegistrations>()(
  "TooManyRegistrations",
  {
    limit: Schema.Int,
    /** Seconds until the next minute. */
    retryAfter: Schema.Int
  },
  ({ limit }) => `A product of the project may have ${limit} registrations a minute`
) {}
