/**
 * The app under test: it switches a lamp off that is warmer than 30 °C.
 */
import type { PromisedCloud } from "@device-cloud/promise"

/** Guards all lamps of the default project, until the signal of the cloud aborts. */
export const guardLamps = async (cloud: PromisedCloud): Promise<void> => {
  for await (
    const event of cloud.subscribe("guard", { filter: { kinds: ["PropertiesReported"] }, start: "earliest" })
  ) {
    if (event.type !== "property") continue
    const degrees = event.data.properties["temperature"]?.value
    if (typeof degrees !== "number" || degrees <= 30) continue
    await cloud.commands.setProperties("default", event.data.device_id, { power: 0 })
  }
}
