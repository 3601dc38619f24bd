/**
 * Handlers of the routes of the history.
 */
import { History } from "@device-cloud/core"
import { Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import { historyRange } from "./HistoryApi.ts"

/** Implements the group `history`. */
export const layer = group(
  Api,
  "history",
  Effect.fnUntraced(function*(handlers) {
    const history = yield* History
    return handlers.handleAll({
      listPropertyHistory: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            history.properties(projectId, params.device_id, params.property_id, historyRange(query)),
            (samples) => ({ results: samples.map(({ time, value }) => ({ time, value })) })
          )
        ),
      listDeviceEvents: ({ params, query: { event_id, ...range } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(history.events(projectId, params.device_id, event_id, historyRange(range)), (events) => ({
            results: events.map(({ eventId, time, value }) => ({ event_id: eventId, time, value }))
          }))
        )
    })
  })
)
