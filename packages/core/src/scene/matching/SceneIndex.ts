/**
 * The scenes that devices of one product can fire. Finding those that an event
 * fires costs as much as there are triggers for its device and properties,
 * however many others there are.
 */
import type { Json } from "../../kernel/Json.ts"
import { type Compare, compileComparison } from "../definition/Comparison.ts"
import type { DeviceChange } from "../../events/DeviceChange.ts"
import type { PropertyWatch as Watching } from "../../events/Reactions.ts"
import { isPaused, type Scene } from "../definition/Scene.ts"
import type { SceneId } from "../definition/SceneId.ts"
import { maxWaiting } from "../definition/SceneLimits.ts"
import { wildcard } from "../definition/ScenePart.ts"
import type { DeviceTrigger } from "../definition/Trigger.ts"
import { outputOf } from "./SceneEvent.ts"

/** A trigger, ready to be compared. */
interface Watch {
  readonly scene: Scene
  /** Of a property or an output; undefined: whatever it is. */
  readonly compare: Compare | undefined
  /** The output that is compared. */
  readonly output: string | undefined
  /** How long a status has to last. */
  readonly minutes: number | undefined
}

/** A scene that fires when a status has lasted. */
export interface Lasting {
  readonly scene: Scene
  readonly minutes: number
}

type Watches = Array<Watch>

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

const none: ReadonlyArray<Scene> = []

type Found = Set<Scene> | undefined

/** Adds the scenes of watches that fire on the value. */
const take = (watches: Watches | undefined, value: Json, at: number, found: Found): Found => {
  if (watches === undefined) return found
  let all = found
  for (const { compare, minutes, output, scene } of watches) {
    if (minutes !== undefined) continue
    const operand = output === undefined ? value : outputOf(value, output)
    if (compare !== undefined && (operand === undefined || !compare(operand))) continue
    if (isPaused(scene.pausedUntil, at)) continue
    all ??= new Set()
    all.add(scene)
  }
  return all
}

/** Adds the scenes that the event fires of those that watch one device, or any. */
const matchIn = (bySubject: ReadonlyMap<string, Watches>, event: DeviceChange, found: Found): Found => {
  const takeBoth = (subject: string, value: Json, before: Found): Found =>
    take(bySubject.get(wildcard), value, event.at, take(bySubject.get(subject), value, event.at, before))
  switch (event._tag) {
    case "PropertiesChanged": {
      let all = found
      for (const id of Object.keys(event.properties)) all = takeBoth(id, event.properties[id]!.value, all)
      return all
    }
    case "EventReported":
      return takeBoth(event.eventId, event.value, found)
    case "StatusChanged":
      return takeBoth(event.status, event.status, found)
  }
}

/** The triggers that watch properties of one device, of its own and of all devices. */
export class PropertyWatch implements Watching {
  readonly #sources: ReadonlyArray<ReadonlyMap<string, Watches>>
  /** By property that has been asked for. */
  readonly #watches = new Map<string, ReadonlyArray<Watch>>()

  constructor(sources: ReadonlyArray<ReadonlyMap<string, Watches>>) {
    this.#sources = sources
  }

  /** False: this new value of the property fires no scene. */
  mayFire(propertyId: string, value: Json): boolean {
    for (const { compare } of this.#watches.get(propertyId) ?? this.#resolve(propertyId)) {
      if (compare === undefined || compare(value)) return true
    }
    return false
  }

  #resolve(propertyId: string): ReadonlyArray<Watch> {
    const found = this.#sources.flatMap((bySubject) => [
      ...bySubject.get(propertyId) ?? [],
      ...bySubject.get(wildcard) ?? []
    ])
    if (this.#watches.size < maxResolvedProperties) this.#watches.set(propertyId, found)
    return found
  }
}

/** Properties of one device, and devices of one product, for which it is remembered what watches them. */
const maxResolvedProperties = 1000
const maxResolvedDevices = 100_000

export class SceneIndex {
  readonly #productKey: string
  readonly #watches: Readonly<Record<DeviceTrigger["_tag"], ByDevice>> = {
    Property: new Map(),
    Event: new Map(),
    Status: new Map()
  }
  readonly #scenes = new Map<SceneId, Scene>()
  /** What watches properties of devices that have reported lately: it costs the same however many scenes there are. */
  readonly #resolved = new Map<string, PropertyWatch | null>()
  /** Of devices that no scene names. */
  #unnamed: PropertyWatch | null | undefined

  constructor(productKey: string) {
    this.#productKey = productKey
  }

  #triggers(scene: Scene): ReadonlyArray<DeviceTrigger> {
    return scene.triggers.filter((trigger): trigger is DeviceTrigger =>
      trigger._tag !== "Cron" && trigger.productKey === this.#productKey
    )
  }

  /** Takes the scene in, in place of an earlier one of its id. */
  put(scene: Scene): void {
    this.remove(scene.sceneId)
    this.#forgetResolved()
    this.#scenes.set(scene.sceneId, scene)
    for (const trigger of this.#triggers(scene)) {
      const byDevice = this.#watches[trigger._tag]
      const bySubject = byDevice.get(trigger.deviceName) ?? new Map<string, Watches>()
      byDevice.set(trigger.deviceName, bySubject)
      const subject = subjectOf(trigger)
      const watches: Watches = bySubject.get(subject) ?? []
      bySubject.set(subject, watches)
      const comparison = trigger._tag === "Status" ? null : trigger.comparison
      watches.push({
        scene,
        compare: comparison === null ? undefined : compileComparison(comparison),
        output: trigger._tag === "Event" ? trigger.propertyId ?? undefined : undefined,
        minutes: trigger._tag === "Status" ? trigger.minutes : undefined
      })
    }
  }

  remove(sceneId: SceneId): void {
    const scene = this.#scenes.get(sceneId)
    if (scene === undefined) return
    this.#forgetResolved()
    this.#scenes.delete(sceneId)
    for (const trigger of this.#triggers(scene)) {
      const byDevice = this.#watches[trigger._tag]
      const bySubject = byDevice.get(trigger.deviceName)
      const subject = subjectOf(trigger)
      const watches = bySubject?.get(subject)
      if (bySubject === undefined || watches === undefined) continue
      const others = watches.filter((watch) => watch.scene.sceneId !== sceneId)
      if (others.length === 0) bySubject.delete(subject)
      else bySubject.set(subject, others)
      if (bySubject.size === 0) byDevice.delete(trigger.deviceName)
    }
  }

  /** Whether the index holds triggers of the kind of event for this device at all. */
  watches(kind: DeviceChange["_tag"], deviceName: string): boolean {
    const byDevice = this.#watches[kinds[kind]]
    return byDevice.has(wildcard) || byDevice.has(deviceName)
  }

  /** Undefined: no scene is fired by a property of the device. */
  propertyWatch(deviceName: string): PropertyWatch | undefined {
    const known = this.#resolved.get(deviceName)
    return (known === undefined ? this.#resolve(deviceName) : known) ?? undefined
  }

  #resolve(deviceName: string): PropertyWatch | null {
    const { Property } = this.#watches
    const own = Property.get(deviceName)
    const every = Property.get(wildcard)
    this.#unnamed ??= every === undefined ? null : new PropertyWatch([every])
    const watch = own === undefined ? this.#unnamed : new PropertyWatch(every === undefined ? [own] : [own, every])
    if (this.#resolved.size >= maxResolvedDevices) this.#resolved.clear()
    this.#resolved.set(deviceName, watch)
    return watch
  }

  #forgetResolved(): void {
    this.#resolved.clear()
    this.#unnamed = undefined
  }

  /** The scenes that the event fires, each once; those that are paused then are left out. */
  match(event: DeviceChange): ReadonlyArray<Scene> {
    const byDevice = this.#watches[kinds[event._tag]]
    const { deviceName } = event.device
    const own = byDevice.get(deviceName)
    const every = deviceName === wildcard ? undefined : byDevice.get(wildcard)
    if (own === undefined && every === undefined) return none
    const found = every === undefined ? undefined : matchIn(every, event, undefined)
    const all = own === undefined ? found : matchIn(own, event, found)
    return all === undefined ? none : [...all]
  }

  /**
   * The scenes that the change fires if the status lasts, each once for each time
   * that it may have to last; at most {@link maxWaiting}, the oldest scenes first.
   */
  lasting(deviceName: string, status: "online" | "offline"): ReadonlyArray<Lasting> {
    const found: Array<Lasting> = []
    for (const name of [deviceName, wildcard]) {
      for (const { minutes, scene } of this.#watches.Status.get(name)?.get(status) ?? []) {
        if (minutes === undefined) continue
        if (!found.some((other) => other.scene === scene && other.minutes === minutes)) found.push({ scene, minutes })
      }
    }
    return found.toSorted((a, b) => a.scene.createdAt - b.scene.createdAt).slice(0, maxWaiting)
  }

  /** The scenes that a value of the property of the device may fire, whatever it is. */
  watchersOf(deviceName: string, propertyId: string): ReadonlyArray<Scene> {
    const found = new Set<Scene>()
    for (const name of [deviceName, wildcard]) {
      for (const subject of [propertyId, wildcard]) {
        for (const { scene } of this.#watches.Property.get(name)?.get(subject) ?? []) found.add(scene)
      }
    }
    return [...found]
  }
}
