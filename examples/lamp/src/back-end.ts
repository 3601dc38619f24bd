/**
 * A back end: it follows the reports of all lamps, and switches off those that are
 * too warm. It knows the cloud by its API alone.
 */
import { type Api, CloudError } from "@device-cloud/promise"

/** Runs until the signal aborts. Events that it misses while it is away come when it is back. */
export const guardLamps = async (api: Api, signal: AbortSignal): Promise<void> => {
  const guarded = api.withSignal(signal)
  try {
    for await (const event of guarded.subscribe("guard", { filter: { types: ["property"] }, start: "earliest" })) {
      if (event.type !== "property") continue
      const { device_id, device_name, properties } = event.data
      const degrees = properties["temperature"]?.value
      if (typeof degrees !== "number" || degrees <= 30) continue
      console.log(`The back end: ${device_name} has ${degrees} °C, switch it off`)
      await switchOff(guarded, device_id)
    }
  } catch (error) {
    if (error !== signal.reason) throw error
  }
}

const switchOff = async (api: Api, device_id: string): Promise<void> => {
  try {
    await api.commands.setDeviceProperties({ params: { device_id }, payload: { params: { power: 0 } } })
  } catch (error) {
    // A lamp that was deleted meanwhile is off.
    if (error instanceof CloudError && error.code === 40402) return
    throw error
  }
}
