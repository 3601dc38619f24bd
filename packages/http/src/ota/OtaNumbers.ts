/**
 * The numbers that the API has for the names of the domain: for each kind of name
 * a codec, whose encoded side is the number. See docs/api/firmware.md.
 */
import { upgradeStatuses } from "@device-cloud/core"
import { Schema, SchemaTransformation } from "effect"
import * as PathParams from "../PathParams.ts"

/** Of firmware and of verify tasks. */
export const VerificationCode = Schema.Literals([0, 1, 2, 3, 4]).transform(
  ["unverified", "verifying", "passed", "failed", "cancelled"]
).annotate({
  description: "0 pending verification, 1 verifying, 2 verification succeeded, 3 verification failed, 4 cancelled"
})

const upgradeTaskStatuses = ["pending", "in-progress", "completed", "failed", "cancelled"] as const

/** Of upgrade tasks. */
export const UpgradeTaskCode = Schema.Literals([0, 1, 2, 3, 4]).transform(upgradeTaskStatuses).annotate({
  description: "0 pending, 1 in progress, 2 completed, 3 failed, 4 cancelled"
})

/** `UpgradeTaskCode` in a query. */
export const UpgradeTaskCodeInQuery = PathParams.wholeNumber(upgradeTaskStatuses.length - 1).pipe(
  Schema.decodeTo(
    Schema.Literals(upgradeTaskStatuses),
    SchemaTransformation.transform({
      decode: (code) => upgradeTaskStatuses[code]!,
      encode: (status) => upgradeTaskStatuses.indexOf(status)
    })
  )
)

/** Of a device in a task. */
export const RecordCode = Schema.Literals([1, 2, 3, 4, 5]).transform(
  upgradeStatuses
).annotate({ description: "1 pending, 2 upgrading, 3 succeeded, 4 failed, 5 cancelled" })

/** `RecordCode` in a query. */
export const RecordCodeInQuery = Schema.Literals(["1", "2", "3", "4", "5"]).transform(upgradeStatuses).annotate({
  description: "1 pending, 2 upgrading, 3 succeeded, 4 failed, 5 cancelled"
})

// A union of one: a plain literal would tell payloads apart, and a wrong number would not be an issue of its field.
export const AlgorithmCode = Schema.Literals([1]).transform(["md5"]).annotate({ description: "1: md5" })

export const UpgradeTypeCode = Schema.Literals([1]).transform(["static"]).annotate({ description: "1: static" })

export const PolicyCode = Schema.Literals([0, 1]).transform(["pull", "push"]).annotate({
  description: "1: the cloud tells the devices, 0: they ask"
})

export const ScopeCode = Schema.Literals([0, 1]).transform(["all", "targeted"]).annotate({
  description: "0: all, 1: targeted"
})
