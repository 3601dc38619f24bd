/**
 * Handlers of the routes that say how long history is kept.
 */
import { HistoryRetention, type ProductRetention } from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"

/** Implements the group `historyRetention`. */
export const layer = group(
  Api,
  "historyRetention",
  Effect.fnUntraced(function*(handlers) {
    const retention = yield* HistoryRetention
    return handlers.handleAll({
      getHistoryRetention: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(retention.get(projectId, params.product_key), encode)),
      setHistoryRetention: ({ params, payload: { days } }) =>
        CurrentPrincipal.use(({ projectId }) => respond(retention.set(projectId, params.product_key, days), encode)),
      deleteHistoryRetention: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(retention.set(projectId, params.product_key, null), encode))
    })
  })
)

const encode = ({ days, defaultDays }: ProductRetention) => ({ days, default_days: defaultDays })
