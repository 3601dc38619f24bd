/**
 * Notes when traced devices connect and disconnect.
 */
import { Effect, Layer } from "effect"
import { throughGateway } from "../trace/TraceEntry.ts"
import { TraceRecorder } from "../trace/TraceRecorder.ts"
import { type DeviceSession, endReasonOf } from "./DeviceSession.ts"
import { DeviceSessions } from "./DeviceSessions.ts"

/** Listens as long as the scope lives. */
export const layer: Layer.Layer<never, never, DeviceSessions | TraceRecorder> = Layer.effectDiscard(
  Effect.gen(function*() {
    const sessions = yield* DeviceSessions
    const recorder = yield* TraceRecorder

    const note = (
      { connection: { device, gateway, ip, transport = "other" } }: DeviceSession,
      about: { readonly kind: "connected" } | { readonly kind: "disconnected"; readonly reason: string }
    ) => recorder.note(device.deviceId, { ...about, transport, address: ip, ...throughGateway(device, gateway) })

    yield* sessions.listen({
      attached: (session) => {
        if (recorder.isOn()) note(session, { kind: "connected" })
      },
      detached: (session) => {
        // One that was never stored was not connected.
        if (!recorder.isOn() || session.epoch === 0) return
        note(session, {
          kind: "disconnected",
          reason: endReasonOf(session)
        })
      }
    })
  })
)
