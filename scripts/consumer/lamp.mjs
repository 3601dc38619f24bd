/**
 * What the tests of all runners ask: a lamp does what it is told.
 */
import { TestCloud } from "@device-cloud/testing"

/** Returns the power that the lamp has reported, and how the loop over its events has ended. */
export const tellLamp = async () => {
  const cloud = await TestCloud.start()
  const device = await cloud.createDevice()
  await cloud.connect(device, { on: { set: () => {} } })
  const loop = (async () => {
    for await (const event of cloud.subscribe("lamps")) if (event.type === "none") return
  })()
  const end = loop.catch(({ message }) => message)
  await cloud.commands.setProperties("default", device.deviceId, { power: 1 })
  await cloud.advance("1 second")
  const { shadow } = await cloud.shadows.get("default", device.deviceId)
  await cloud.close()
  return [shadow.reported.power.value, await end]
}
