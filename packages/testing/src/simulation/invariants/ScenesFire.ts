/**
 * Scenes fire exactly when a naive reading of the feed says so: one execution for each
 * cause, whatever node carries it out and whatever dies meanwhile.
 */
import type { DeviceId } from "@device-cloud/core"
import { type Fleet, type FleetProject, hot, longMinutes } from "../Fleet.ts"
import type { Inspection, Invariant } from "../Witness.ts"

export const name = "scenes fire when they should"

const minute = 60_000

/** How close to its end a time may be interrupted, milliseconds: nodes look each second. */
const margin = 5000

/** How often something should have happened. */
interface Expected {
  least: number
  most: number
}

export const make = (
  { time, violated, wasDisturbed }: Inspection,
  { projects }: Fleet,
  nodes: number
): Invariant => {
  const from = time.now
  const expected = new Map<string, Expected>()
  const fired = new Map<string, number>()
  const executions = new Set<string>()
  const reported = new Map<DeviceId, { readonly value: number; readonly time: number }>()
  /** Since when devices are offline, Unix milliseconds. */
  const offline = new Map<DeviceId, { readonly since: number; readonly key: string }>()
  /** Devices that are disabled, or have been while they were offline: they need not fire. */
  const disabled = new Set<DeviceId>()
  const gone = new Set<DeviceId>()

  const keyOf = (sceneId: string, deviceId: DeviceId | undefined) => `${sceneId} ${deviceId ?? ""}`

  const expect = (key: string, isSure = true) => {
    const known = expected.get(key) ?? { least: 0, most: 0 }
    expected.set(key, { least: known.least + (isSure ? 1 : 0), most: known.most + 1 })
  }

  const isSomebodyThere = (start: number, end: number) =>
    Array.from({ length: nodes }, (_, place) => place).some((place) => !wasDisturbed(place, start, end))

  /** A device is no longer offline, or its time is over. */
  const endOffline = (deviceId: DeviceId, until: number) => {
    const state = offline.get(deviceId)
    if (state === undefined) return
    offline.delete(deviceId)
    const due = state.since + longMinutes * minute
    if (until < due - margin) return
    const mayFire = !gone.has(deviceId) && !disabled.has(deviceId)
    const isSure = until > due + margin && mayFire && isSomebodyThere(due - margin, due + margin)
    expect(state.key, isSure)
  }

  const projectOf = (productKey: string): FleetProject | undefined =>
    projects.find(({ direct }) => direct.productKey === productKey)

  return {
    deleted: ({ deviceId }) => void gone.add(deviceId),
    recorded: ({ event }) => {
      if (event._tag === "SceneExecuted") {
        if (executions.has(event.executionId)) violated(name, `execution ${event.executionId} has ended twice`)
        executions.add(event.executionId)
        const key = keyOf(event.sceneId, event.device?.deviceId)
        fired.set(key, (fired.get(key) ?? 0) + 1)
        return
      }
      const { at, device: { deviceId, productKey } } = event
      const project = projectOf(productKey)
      if (project === undefined) return
      const { scenes } = project
      if (event._tag === "PropertiesReported") {
        const { temperature } = event.properties
        const known = reported.get(deviceId)
        if (temperature === undefined || (known !== undefined && temperature.time < known.time)) return
        const value = temperature.value as number
        reported.set(deviceId, { value, time: temperature.time })
        if (value !== known?.value && value > hot) expect(keyOf(scenes.hot, deviceId))
      } else if (event._tag === "DeviceStatusChanged") {
        if (event.status === "online") {
          endOffline(deviceId, at)
          return void disabled.delete(deviceId)
        }
        expect(keyOf(scenes.left, deviceId))
        offline.set(deviceId, { since: at, key: keyOf(scenes.gone, deviceId) })
      } else if (event._tag === "DeviceLifecycle" && event.action === "disable") disabled.add(deviceId)
    },
    finished: () => {
      for (const deviceId of offline.keys()) endOffline(deviceId, time.now - margin)
      const tenMinutes = 10 * minute
      for (let at = Math.ceil(from / tenMinutes) * tenMinutes; at <= time.now - minute; at += tenMinutes) {
        for (const { scenes } of projects) {
          expect(keyOf(scenes.clock, undefined), isSomebodyThere(at - margin, at + margin))
        }
      }
      for (const key of new Set([...expected.keys(), ...fired.keys()])) {
        const { least, most } = expected.get(key) ?? { least: 0, most: 0 }
        const times = fired.get(key) ?? 0
        if (times < least || times > most) {
          violated(name, `scene and device ${key} have fired ${times} times; expected ${least} to ${most}`)
        }
      }
    }
  }
}
