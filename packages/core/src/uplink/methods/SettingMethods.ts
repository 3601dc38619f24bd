/**
 * The methods with which a device reads its settings. The only setting says
 * whether the device sends its logs (docs/protocol/reports.md).
 */
import { Effect, Option, Result } from "effect"
import { DeviceSessions } from "../../connection/DeviceSessions.ts"
import type { Device, DeviceIdentity } from "../../device/Device.ts"
import type { LifecycleHook } from "../../device/DeviceLifecycle.ts"
import { DeviceStore } from "../../device/DeviceStore.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { deviceNotFound, success } from "../DeviceReply.ts"

/** The setting as the device reads it: mode 1 asks for logs. */
const logSwitch = ({ diagnosisEnabled }: Pick<Device, "diagnosisEnabled">) => ({
  getType: "content",
  content: { mode: diagnosisEnabled ? 1 : 0 }
})

const find = ({ deviceId, projectId }: DeviceIdentity) =>
  Effect.map(
    DeviceStore.use((devices) => devices.get(projectId, { deviceId })),
    Option.map(({ device }) => device)
  )

export const methods = [
  DeviceMethod.request({
    name: "thing.config.log.get",
    decode: () => Result.succeed(undefined),
    handle: (_, { device }) =>
      Effect.map(
        find(device),
        Option.match({ onNone: () => deviceNotFound, onSome: (found) => success(logSwitch(found)) })
      )
  })
]

/** Sends a changed setting to connected devices. */
export const lifecycleHook = Effect.map(
  Effect.all([DeviceStore, DeviceSessions]),
  ([devices, sessions]): LifecycleHook => ({
    stage: "feature",
    configured: (configured) =>
      Effect.forEach(
        configured,
        Effect.fnUntraced(function*(identity) {
          const found = yield* Effect.provideService(find(identity), DeviceStore, devices)
          if (Option.isNone(found)) return
          yield* sessions.deliverAnywhere(identity.deviceId, {
            method: "thing.config.log.push",
            params: logSwitch(found.value)
          })
        }),
        { discard: true }
      )
  })
)
