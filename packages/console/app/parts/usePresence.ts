/**
 * Whether the devices that are shown are connected.
 */
import { ApiError } from "../api/ApiError.ts"
import { api } from "../api/client.ts"
import { useLiveMoments } from "../api/live.ts"
import { type Query, useQuery } from "../api/useQuery.ts"

const noSuchDevice = 40402

/** The status of each device by its id, as it changes. One that was deleted has none. */
export const usePresence = (deviceIds: ReadonlyArray<string>): Query<Readonly<Record<string, string>>> => {
  const query = useQuery<Readonly<Record<string, string>>>(
    async (signal) => Object.fromEntries(await Promise.all(deviceIds.map((id) => statusOf(id, signal)))),
    [deviceIds.join()]
  )
  useLiveMoments({ types: ["status"] }, (events) => {
    const changed = events.flatMap(({ device_id = "", status }) =>
      deviceIds.includes(device_id) && typeof status === "string" ? [[device_id, status] as const] : []
    )
    if (changed.length > 0) query.change((statuses) => ({ ...statuses, ...Object.fromEntries(changed) }))
  })
  return query
}

const statusOf = async (deviceId: string, signal: AbortSignal): Promise<readonly [string, string]> => {
  try {
    const { status } = await api.devices.getDeviceStatus({ params: { device_id: deviceId }, signal })
    return [deviceId, status]
  } catch (error) {
    if (error instanceof ApiError && error.code === noSuchDevice) return [deviceId, ""]
    throw error
  }
}
