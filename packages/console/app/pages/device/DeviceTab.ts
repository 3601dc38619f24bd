/**
 * What each tab of a device gets.
 */
import type { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import type { ThingModel } from "../../parts/model/Model.ts"

export type DeviceInfo = Data<typeof api.devices.getDevice>["device_info"]

export interface TabProps {
  readonly device: DeviceInfo
  readonly model: ThingModel
  /** Reads the device again, after it was changed. */
  readonly reload: () => void
}
