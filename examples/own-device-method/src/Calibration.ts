/**
 * The device method by which a device reports its calibration.
 */
import { DeviceMethod, DeviceReply } from "@device-cloud/core"
import { Schema } from "effect"

const Calibration = Schema.Struct({ offset: Schema.Finite, by: Schema.String })

/**
 * A state update: the offset becomes a property of the device's shadow, and the
 * calibration an event in its history. Both are stored in one transaction,
 * before the reply leaves.
 */
export const calibrate = DeviceMethod.update({
  name: "thing.acme.calibrate",
  action: "PostAcme",
  decode: Calibration,
  update: ({ by, offset }, state, { receivedAt }) => {
    const misfit = state.occur("calibrated", { by, offset }, receivedAt, receivedAt)
    if (misfit !== undefined) return DeviceReply.failure(misfit.code, misfit.message)
    const dropped = state.report([["offset", { value: offset, time: receivedAt }]], receivedAt)
    return DeviceReply.success({ dropped })
  }
})
