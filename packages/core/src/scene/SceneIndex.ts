/**
 * The scenes that devices of one product can fire. Finding those that an event
 * fires costs as much as there are triggers for its device and properties,
 * however many others there are.
 */
import type { Json } from "../shadow/Shadow.ts"
import { type Compare, compileComparison } from "./Comparison.ts"
import { any, type DeviceTrigger, type Scene, type SceneId } from "./Scene.ts"
import { type DeviceSceneEvent, outputOf } from "./SceneEvent.ts"

/** A trigger, ready to be compared. */
interface Watch {
  readonly scene: Scene
  /** Of a property or an output; undefined: whatever it is. */
  readonly compare: Compare | undefined
  /** The output that is compared. */
  readonly output: string | undefined
}

type Watches = Map<SceneId, Array<Watch>>

/** By device name or `*`, then by property, event or status, or `*`. */
type ByDevice = Map<string, Map<string, Watches>>

const kinds = { PropertiesChanged: "Property", EventReported: "Event", StatusChanged: "Status" } as const

/** What of a trigger's kind it watches. */
const subjectOf = (trigger: DeviceTrigger): string => {
  switch (trigger._tag) {
    case "Property":
      return trigger.propertyId
    case "Event":
      return trigger.eventId
    case "Status":
      return trigger.status
  }
}

export class SceneIndex {
  readonly #productKey: string
  readonly #watches: Readonly<Record<DeviceTrigger["_tag"], ByDevice>> = {
    Property: new Map(),
    Event: new Map(),
    Status: new Map()
  }
  readonly #scenes = new Map<SceneId, Scene>()

  constructor(productKey: string) {
    this.#productKey = productKey
  }

  /** Scenes that it holds. */
  get size(): number {
    return this.#scenes.size
  }

  #triggers(scene: Scene): ReadonlyArray<DeviceTrigger> {
    return scene.triggers.filter((trigger): trigger is DeviceTrigger =>
      trigger._tag !== "Cron" && trigger.productKey === this.#productKey
    )
  }

  /** Takes the scene in, in place of an earlier one of its id. */
  put(scene: Scene): void {
    this.remove(scene.sceneId)
    this.#scenes.set(scene.sceneId, scene)
    for (const trigger of this.#triggers(scene)) {
      const byDevice = this.#watches[trigger._tag]
      const bySubject = byDevice.get(trigger.deviceName) ?? new Map<string, Watches>()
      byDevice.set(trigger.deviceName, bySubject)
      const subject = subjectOf(trigger)
      const watches: Watches = bySubject.get(subject) ?? new Map()
      bySubject.set(subject, watches)
      const comparison = trigger._tag === "Status" ? null : trigger.comparison
      const watch: Watch = {
        scene,
        compare: comparison === null ? undefined : compileComparison(comparison),
        output: trigger._tag === "Event" ? trigger.propertyId ?? undefined : undefined
      }
      const known = watches.get(scene.sceneId)
      if (known === undefined) watches.set(scene.sceneId, [watch])
      else known.push(watch)
    }
  }

  remove(sceneId: SceneId): void {
    const scene = this.#scenes.get(sceneId)
    if (scene === undefined) return
    this.#scenes.delete(sceneId)
    for (const trigger of this.#triggers(scene)) {
      const byDevice = this.#watches[trigger._tag]
      const bySubject = byDevice.get(trigger.deviceName)
      const subject = subjectOf(trigger)
      const watches = bySubject?.get(subject)
      if (bySubject === undefined || watches === undefined) continue
      watches.delete(sceneId)
      if (watches.size === 0) bySubject.delete(subject)
      if (bySubject.size === 0) byDevice.delete(trigger.deviceName)
    }
  }

  /** Whether the index holds triggers of the kind of event for this device at all. */
  watches(kind: DeviceSceneEvent["_tag"], deviceName: string): boolean {
    const byDevice = this.#watches[kinds[kind]]
    return byDevice.has(any) || byDevice.has(deviceName)
  }

  /** The scenes that the event fires, each once; those that are paused then are left out. */
  match(event: DeviceSceneEvent): ReadonlyArray<Scene> {
    const found: Array<Scene> = []
    const seen = new Set<SceneId>()
    this.#visit(event, (watches, value) => {
      for (const [sceneId, triggers] of watches) {
        if (seen.has(sceneId)) continue
        for (const { compare, output, scene } of triggers) {
          const operand = output === undefined || value === undefined ? value : outputOf(value, output)
          if (compare !== undefined && (operand === undefined || !compare(operand))) continue
          seen.add(sceneId)
          if (scene.pausedUntil === null || event.at >= scene.pausedUntil) found.push(scene)
          break
        }
      }
    })
    return found
  }

  /** The scenes that a value of the property of the device may fire, whatever it is. */
  watchersOf(deviceName: string, propertyId: string): ReadonlyArray<Scene> {
    const found = new Set<Scene>()
    for (const name of [deviceName, any]) {
      for (const subject of [propertyId, any]) {
        const watches = this.#watches.Property.get(name)?.get(subject)
        for (const sceneId of watches?.keys() ?? []) found.add(this.#scenes.get(sceneId)!)
      }
    }
    return [...found]
  }

  /** The triggers that watch what has happened, with the value that they are about. */
  #visit(event: DeviceSceneEvent, visit: (watches: Watches, value: Json | undefined) => void): void {
    const byDevice = this.#watches[kinds[event._tag]]
    for (const name of [event.device.deviceName, any]) {
      const bySubject = byDevice.get(name)
      if (bySubject === undefined) continue
      const look = (subject: string, value: Json | undefined) => {
        const exact = bySubject.get(subject)
        if (exact !== undefined) visit(exact, value)
        const every = bySubject.get(any)
        if (every !== undefined) visit(every, value)
      }
      switch (event._tag) {
        case "PropertiesChanged":
          for (const id of Object.keys(event.properties)) look(id, event.properties[id]!.value)
          break
        case "EventReported":
          look(event.eventId, event.value)
          break
        case "StatusChanged":
          look(event.status, event.status)
      }
    }
  }
}
