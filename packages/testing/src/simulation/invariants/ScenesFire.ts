/**
 * Scenes fire exactly when a naive reading of the feed says so: one execution for each
 * cause, whatever node carries it out and whatever dies meanwhile.
 */
import type { DeviceId } from "@device-cloud/core"
import { type Fleet, type FleetProject, hot, longMinutes } from "../Fleet.ts"
import type { Plan } from "../Plan.ts"
import type { Inspection, Invariant } from "../Witness.ts"

export const name = "scenes fire when they should"

const minute = 60_000

/** How long before and after a scene is found to fire too often it may be silent, milliseconds. */
const pauses = { before: 15_000, after: 70_000 }

/** Something that fires a scene. */
interface Cause {
  /** Unix milliseconds. */
  readonly at: number
  /** Whether it must, or may. */
  readonly isSure: boolean
}

/** Unix milliseconds. */
interface Silence {
  readonly from: number
  until: number
}

export const make = (
  { time, violated, wasDisturbed }: Inspection,
  { projects }: Fleet,
  { look, nodes }: Pick<Plan, "look" | "nodes">
): Invariant => {
  /** How close to its end a time may be interrupted, milliseconds: nodes look whether it is over. */
  const margin = 4000 + look * 1000
  const from = time.now
  const causes = new Map<string, Array<Cause>>()
  /** When scenes may have been silent because they fired too often, one time after the other. */
  const paused = new Map<string, Array<Silence>>()
  const fired = new Map<string, number>()
  const executions = new Set<string>()
  const reported = new Map<DeviceId, { readonly value: number; readonly time: number }>()
  /** Since when devices are offline, Unix milliseconds. */
  const offline = new Map<DeviceId, { readonly since: number; readonly key: string }>()
  /** Devices that are disabled, or have been while they were offline: they need not fire. */
  const disabled = new Set<DeviceId>()
  const gone = new Set<DeviceId>()

  const keyOf = (sceneId: string, deviceId: DeviceId | undefined) => `${sceneId} ${deviceId ?? ""}`

  const expect = (key: string, at: number, isSure = true) => {
    const known = causes.get(key)
    if (known === undefined) causes.set(key, [{ at, isSure }])
    else known.push({ at, isSure })
  }

  const mustFire = (sceneId: string, { at, isSure }: Cause) =>
    isSure && !(paused.get(sceneId) ?? []).some(({ from, until }) => at > from && at < until)

  const pause = (sceneId: string, at: number) => {
    const silence: Silence = { from: at - pauses.before, until: at + pauses.after }
    const known = paused.get(sceneId)
    const last = known?.at(-1)
    if (known === undefined) paused.set(sceneId, [silence])
    else if (last !== undefined && last.from <= silence.from && silence.from < last.until) {
      last.until = Math.max(last.until, silence.until)
    } else known.push(silence)
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
    expect(state.key, due, isSure)
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
        if (event.status === "paused") pause(event.sceneId, event.at)
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
        if (value !== known?.value && value > hot) expect(keyOf(scenes.hot, deviceId), at)
      } else if (event._tag === "DeviceStatusChanged") {
        if (event.status === "online") {
          endOffline(deviceId, at)
          return void disabled.delete(deviceId)
        }
        expect(keyOf(scenes.left, deviceId), at)
        offline.set(deviceId, { since: at, key: keyOf(scenes.gone, deviceId) })
      } else if (event._tag === "DeviceLifecycle" && event.action === "disable") disabled.add(deviceId)
    },
    finished: () => {
      for (const deviceId of offline.keys()) endOffline(deviceId, time.now - margin)
      const tenMinutes = 10 * minute
      for (let at = Math.ceil(from / tenMinutes) * tenMinutes; at <= time.now; at += tenMinutes) {
        const isSure = at <= time.now - minute && isSomebodyThere(at - margin, at + margin)
        for (const { scenes } of projects) expect(keyOf(scenes.clock, undefined), at, isSure)
      }
      for (const key of new Set([...causes.keys(), ...fired.keys()])) {
        const all = causes.get(key) ?? []
        const least = all.filter((cause) => mustFire(key.split(" ")[0]!, cause)).length
        const times = fired.get(key) ?? 0
        if (times < least || times > all.length) {
          violated(name, `scene and device ${key} have fired ${times} times; expected ${least} to ${all.length}`)
        }
      }
    }
  }
}
