/**
 * The shadow of a device, which follows what the device reports.
 */
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { type LiveEvent, useLive } from "../../api/live.ts"
import { type Query, useQuery } from "../../api/useQuery.ts"

export type Shadow = Data<typeof api.devices.getDeviceShadow>["thing_shadow"]

export const useShadow = (deviceId: string): Query<Shadow> => {
  const query = useQuery(async (signal) => {
    const { thing_shadow } = await api.devices.getDeviceShadow({ params: { device_id: deviceId }, signal })
    return thing_shadow
  }, [deviceId])
  useLive({ device_id: deviceId }, (event) => {
    if (event.type !== "property") return
    query.change((shadow) => withReport(shadow, event))
    // The device may have done what is desired, and says so to the server alone.
    const { data, isLoading } = query
    if (data === undefined ? isLoading : reportOf(event).some(([id]) => id in data.state.desired)) query.reload()
  })
  return query
}

/** What an event of type `property` says, by property id. Times are Unix milliseconds. */
export const reportOf = (event: LiveEvent) =>
  Object.entries(event["properties"] as Readonly<Record<string, { readonly value: Value; readonly time: number }>>)

type Value = Shadow["state"]["reported"][string]

/** A value that was measured before the one of the shadow does not replace it. What is desired the server knows. */
const withReport = (shadow: Shadow, event: LiveEvent): Shadow => {
  const reported = { ...shadow.state.reported }
  const times = { ...shadow.metadata.reported }
  for (const [id, { time, value }] of reportOf(event)) {
    const timestamp = Math.floor(time / 1000)
    if (timestamp < (times[id]?.timestamp ?? 0)) continue
    reported[id] = value
    times[id] = { timestamp }
  }
  return {
    ...shadow,
    state: { ...shadow.state, reported },
    metadata: { ...shadow.metadata, reported: times }
  }
}
