/**
 * Handlers of the routes that show how a project is.
 */
import { type ActivityPoint, type ActivitySeries, ProjectActivity } from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import type { ActivityInfo, ActivityPointInfo } from "./OverviewApi.ts"

/** Implements the group `overview`. */
export const layer = group(
  Api,
  "overview",
  Effect.fnUntraced(function*(handlers) {
    const activity = yield* ProjectActivity
    return handlers.handleAll({
      getActivity: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) => respond(activity.series(projectId, query), activityInfo))
    })
  })
)

const activityInfo = ({ points, ...period }: ActivitySeries): typeof ActivityInfo.Type => ({
  ...period,
  points: points.map(pointInfo)
})

const pointInfo = ({ devicesOnline, ...point }: ActivityPoint): typeof ActivityPointInfo.Type => ({
  ...point,
  devices_online: devicesOnline
})
