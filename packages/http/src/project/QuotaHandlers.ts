/**
 * Handlers of the routes of quotas.
 */
import { ProjectNotFound, type QuotaReport, Quotas } from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { QuotaRecord } from "./QuotaApi.ts"

/** Implements the group `quotas`. */
export const layer = group(
  Api,
  "quotas",
  Effect.fnUntraced(function*(handlers) {
    const quotas = yield* Quotas
    return handlers.handleAll({
      getOwnQuotas: () => CurrentPrincipal.use(({ projectId }) => respond(quotas.get(projectId), quotaRecord)),
      getQuotas: ({ params: { project_id } }) =>
        CurrentPrincipal.use(({ projectId, role }) =>
          respond(
            role === "owner" || project_id === projectId
              ? quotas.get(project_id)
              // To all others there is no other project.
              : Effect.fail(new ProjectNotFound({ projectId: project_id })),
            quotaRecord
          )
        ),
      setQuotas: ({ params, payload }) => respond(quotas.set(params.project_id, toCamelCase(payload)), quotaRecord)
    })
  })
)

const quotaRecord = ({ limits, used }: QuotaReport): typeof QuotaRecord.Type => ({
  limits: {
    products: limits.products,
    devices: limits.devices,
    device_groups: limits.deviceGroups,
    access_keys: limits.accessKeys,
    scenes: limits.scenes,
    jobs: limits.jobs,
    subscriptions: limits.subscriptions,
    object_bytes: limits.objectBytes,
    registrations_per_minute: limits.registrationsPerMinute
  },
  used: {
    products: used.products,
    devices: used.devices,
    device_groups: used.deviceGroups,
    access_keys: used.accessKeys,
    scenes: used.scenes,
    jobs: used.jobs,
    subscriptions: used.subscriptions,
    object_bytes: used.objectBytes
  }
})
