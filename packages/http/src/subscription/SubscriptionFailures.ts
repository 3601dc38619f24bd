/**
 * Failures of the routes of subscriptions.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NoSuchSubscription = failure(
  "NoSuchSubscription",
  Code.noSuchSubscription,
  "The project has no such subscription"
)

export const SubscriptionNameTaken = failure("SubscriptionNameTaken", Code.taken, "A subscription has this name")

export const SubscriptionUnfit = failure(
  "SubscriptionUnfit",
  Code.operationUnfit,
  "The subscription pushes to its webhook, so that nobody else reads it; or it has no webhook"
)

export const SubscriptionLeaseLost = failure(
  "SubscriptionLeaseLost",
  Code.leaseLost,
  "The worker does not hold any more what it acknowledges"
)

export const TooManyWorkers = failure("TooManyWorkers", Code.stateForbids, "The subscription has too many workers")

/** From the errors of the domain. */
export const subscriptionFailures = {
  SubscriptionNotFound: ({ message }: Core.SubscriptionNotFound) => NoSuchSubscription.make({ message }),
  SubscriptionNameTaken: ({ message }: Core.SubscriptionNameTaken) => SubscriptionNameTaken.make({ message }),
  SubscriptionPushes: ({ message }: Core.SubscriptionPushes) => SubscriptionUnfit.make({ message }),
  SubscriptionPushesNot: ({ message }: Core.SubscriptionPushesNot) => SubscriptionUnfit.make({ message }),
  SubscriptionLeaseLost: ({ message }: Core.SubscriptionLeaseLost) => SubscriptionLeaseLost.make({ message }),
  TooManyWorkers: ({ message }: Core.TooManyWorkers) => TooManyWorkers.make({ message })
}
