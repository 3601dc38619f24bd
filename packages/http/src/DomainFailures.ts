/**
 * From the errors of the domain to the failures of the API. Each concept maps
 * its own; an error that none of them maps does not compile in a handler.
 */
import { type InvalidInput, StoreError } from "@device-cloud/core"
import { Effect } from "effect"
import { browserSessionFailures } from "./browser-session/BrowserSessionFailures.ts"
import { bulkCommandFailures } from "./bulk/BulkCommandFailures.ts"
import { certificateFailures } from "./certificate/CertificateFailures.ts"
import { codecFailures } from "./codec/CodecFailures.ts"
import { commandFailures } from "./command/CommandFailures.ts"
import { configurationFailures } from "./configuration/ConfigurationFailures.ts"
import { deviceFailures } from "./device/DeviceFailures.ts"
import { type Failure, invalidParameter, StorageUnreachable } from "./Failure.ts"
import { topologyFailures } from "./gateway/TopologyFailures.ts"
import { deviceGroupFailures } from "./group/DeviceGroupFailures.ts"
import { jobFailures } from "./job/JobFailures.ts"
import { meshFailures } from "./mesh/MeshFailures.ts"
import { objectFailures } from "./object/ObjectFailures.ts"
import { otaFailures } from "./ota/OtaFailures.ts"
import { productFailures } from "./product/ProductFailures.ts"
import { projectFailures } from "./project/ProjectFailures.ts"
import { provisioningFailures } from "./provisioning/ProvisioningFailures.ts"
import { sceneFailures } from "./scene/SceneFailures.ts"
import { subscriptionFailures } from "./subscription/SubscriptionFailures.ts"
import { thingModelFailures } from "./thing-model/ThingModelFailures.ts"
import { traceFailures } from "./trace/TraceFailures.ts"

const mappings = {
  InvalidInput: ({ issues }: InvalidInput) => invalidParameter(issues),
  ...browserSessionFailures,
  ...bulkCommandFailures,
  ...certificateFailures,
  ...codecFailures,
  ...commandFailures,
  ...configurationFailures,
  ...deviceFailures,
  ...deviceGroupFailures,
  ...jobFailures,
  ...meshFailures,
  ...objectFailures,
  ...otaFailures,
  ...productFailures,
  ...projectFailures,
  ...provisioningFailures,
  ...sceneFailures,
  ...subscriptionFailures,
  ...thingModelFailures,
  ...topologyFailures,
  ...traceFailures
}

type Mappings = typeof mappings

/** An error of a service of the core that has a failure. */
export type DomainError = { readonly _tag: keyof Mappings } | StoreError

/** The failure of the API that an error becomes; a failure stays itself. */
export type FailureOf<E> = E extends StoreError ? typeof StorageUnreachable.Type
  : E extends { readonly _tag: infer Tag } ? Tag extends keyof Mappings ? ReturnType<Mappings[Tag]> : never
  : E

/**
 * Fails as the API does. A storage that is out of reach for now is a failure of
 * its own; any other error of the storage is a defect, because nobody outside
 * can act on it.
 */
export const failWith = <E extends DomainError | Failure>(error: E): Effect.Effect<never, FailureOf<E>> => {
  if (!("_tag" in error)) return Effect.fail(error as FailureOf<E>)
  if (error instanceof StoreError) return unreachable(error) as Effect.Effect<never, FailureOf<E>>
  const toFailure = mappings[error._tag as keyof Mappings] as (error: DomainError) => FailureOf<E>
  return Effect.fail(toFailure(error))
}

const unreachable = (error: StoreError): Effect.Effect<never, typeof StorageUnreachable.Type> =>
  error.retryable
    ? Effect.andThen(
      Effect.logWarning(`${error.operation}: the storage cannot be reached`, error.cause),
      Effect.fail(StorageUnreachable.make({ message: "The storage cannot be reached; try again later" }))
    )
    : Effect.die(error)
