/**
 * What the messages of one device in a batch make of its state, in their order.
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { NewExecution } from "../scene/execution/Execution.ts"
import type { ChangedValue, DeviceSceneEvent, SceneDevice } from "../scene/matching/SceneEvent.ts"
import type { PropertyWatch } from "../scene/matching/SceneIndex.ts"
import type { SceneTriggers } from "../scene/matching/SceneTriggers.ts"
import { type Shadow, ShadowDraft, type ShadowEntry, type ShadowSide } from "../shadow/Shadow.ts"
import { equalJson, isFiniteJson, type Json } from "../kernel/Json.ts"
import type { EventRecord, Facts, PropertySample } from "../history/HistoryEntry.ts"
import { Misfit } from "../thing-model/DataType.ts"
import type { ModelValidator } from "../thing-model/ModelValidator.ts"
import type { DeviceReply } from "./DeviceReply.ts"

/** Finds the scenes that a device fires. */
export type Watch = Pick<SceneTriggers["Service"], "watches" | "propertyWatch" | "fire">

/** Property, or event, to the reason why it was not kept. */
export type Dropped = Readonly<Record<string, string>>

/** Takes a message into the state; it may be taken again into a newer one. */
export type Step = (state: DeviceState) => DeviceReply

export class DeviceState {
  readonly device: DeviceIdentity
  readonly draft: ShadowDraft
  /** What the product's model admits; undefined: everything. */
  readonly validator: ModelValidator | undefined
  readonly #samples: Array<PropertySample> = []
  readonly #events: Array<EventRecord> = []
  readonly #happened: Array<DomainEvent> = []
  readonly #executions: Array<NewExecution> = []
  readonly #watch: Watch
  /** What a change of its properties may fire; undefined: nothing. */
  readonly #propertyWatch: PropertyWatch | undefined

  constructor(device: DeviceIdentity, shadow: Shadow, validator: ModelValidator | undefined, watch: Watch) {
    this.device = device
    this.draft = new ShadowDraft(shadow)
    this.validator = validator
    this.#watch = watch
    this.#propertyWatch = watch.propertyWatch(device)
  }

  get facts(): Facts {
    return { samples: this.#samples, events: this.#events, executions: this.#executions }
  }

  /** What is to be published when the state has been stored. */
  get happened(): ReadonlyArray<DomainEvent> {
    return this.#happened
  }

  /**
   * Takes reported values: those that the model admits and the shadow has room
   * for. A value that is older than the stored one goes into the history only.
   */
  report(
    values: Iterable<readonly [id: string, entry: ShadowEntry]>,
    receivedAt: number,
    version?: number
  ): Dropped {
    let dropped: Record<string, string> | undefined
    const kept: Record<string, ShadowEntry> = {}
    const watch = this.#propertyWatch
    /** What is stored, without those values of this message that have fired nothing yet. */
    let before = watch === undefined ? this.draft.reported : this.draft.holdReported()
    let mayFire = false
    for (const [id, { time, value }] of values) {
      const admitted = this.validator === undefined ? value : this.validator.reported(id, value)
      if (admitted instanceof Misfit) {
        ;(dropped ??= {})[id] = admitted.message
        continue
      }
      const entry = { value: admitted, time }
      const isRepeated = watch !== undefined && Object.hasOwn(kept, id)
      const earlier = isRepeated ? this.draft.holdReported() : before
      const reason = this.draft.set("reported", id, entry)
      if (reason !== undefined) {
        ;(dropped ??= {})[id] = reason
        continue
      }
      // Each of several values of a property in one message is a change of its own.
      if (isRepeated && hasChanged(earlier, this.draft.reported, id)) {
        if (mayFire) this.#change(Object.keys(kept), before, earlier, receivedAt)
        before = mayFire ? earlier : { ...before, [id]: earlier[id]! }
        mayFire = false
      }
      const { reported } = this.draft
      if (watch !== undefined && !mayFire && reported[id] === entry && watch.mayFire(id, admitted)) {
        mayFire = hasChanged(before, reported, id)
      }
      kept[id] = entry
      this.#samples.push({ propertyId: id, time, value: admitted })
    }
    if (mayFire) this.#change(Object.keys(kept), before, this.draft.reported, receivedAt)
    const isKept = Object.keys(kept).length > 0
    if (isKept || version !== undefined) this.draft.accept(receivedAt, version)
    if (isKept) {
      this.#happened.push({ _tag: "PropertiesReported", device: this.device, at: receivedAt, properties: kept })
    }
    return dropped ?? nothing
  }

  /** Takes an event, or answers why the model does not admit it. */
  occur(eventId: string, value: Json, time: number, receivedAt: number): Misfit | undefined {
    let admitted = value
    if (this.validator !== undefined) {
      const check = this.validator.event(eventId)
      if (check === undefined) return new Misfit(6300, `tsl parse: method not exist -> thing.event.${eventId}.post`)
      const checked = check(value as Readonly<Record<string, Json>>)
      if (checked instanceof Misfit) return checked
      admitted = checked
    }
    return this.record(eventId, admitted, time, receivedAt)
  }

  /** Takes something that the model has nothing to say about, if it can be stored. */
  record(eventId: string, value: Json, time: number, receivedAt: number): Misfit | undefined {
    if (!isFiniteJson(value, maxEventNesting)) return notStorable
    this.#events.push({ eventId, time, value })
    this.#happened.push({ _tag: "EventReported", device: this.device, at: receivedAt, eventId, time, value })
    if (this.#watch.watches("EventReported", this.device)) {
      this.#fire({ _tag: "EventReported", device: this.#sceneDevice, at: receivedAt, eventId, time, value })
    }
    return undefined
  }

  get #sceneDevice(): SceneDevice {
    const { deviceId, deviceName, productKey } = this.device
    return { deviceId, productKey, deviceName }
  }

  /** Fires what the changes of these properties fire. */
  #change(ids: ReadonlyArray<string>, before: ShadowSide, after: ShadowSide, at: number): void {
    const properties: Record<string, ChangedValue> = {}
    for (const id of ids) {
      if (!hasChanged(before, after, id)) continue
      const { time, value } = after[id]!
      properties[id] = Object.hasOwn(before, id)
        ? { value, time, previous: before[id]!.value }
        : { value, time }
    }
    this.#fire({ _tag: "PropertiesChanged", device: this.#sceneDevice, at, properties })
  }

  #fire(event: DeviceSceneEvent): void {
    for (const execution of this.#watch.fire(this.device.projectId, event)) this.#executions.push(execution)
  }
}

/** Whether a property has another value after than before. */
const hasChanged = (before: ShadowSide, after: ShadowSide, id: string): boolean =>
  after[id] !== before[id] && (!Object.hasOwn(before, id) || !equalJson(before[id]!.value, after[id]!.value))

/** Objects and arrays inside each other in the outputs of an event. */
const maxEventNesting = 32

const notStorable = new Misfit(460, `expected finite numbers, and at most ${maxEventNesting} levels`)

const nothing: Dropped = {}
