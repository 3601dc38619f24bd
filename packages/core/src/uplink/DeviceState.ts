/**
 * The state of one device while the messages of a batch change it in order.
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { ChangedDevice, DeviceChange } from "../events/DeviceChange.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { PropertyWatch, Reaction, Reactions } from "../events/Reactions.ts"
import type { PropertySample } from "../history/HistoryEntry.ts"
import { aheadRemark, countedTime } from "../kernel/DeviceTime.ts"
import { equalJson, isFiniteJson, type Json } from "../kernel/Json.ts"
import { type Shadow, ShadowDraft, type ShadowEntry, type ShadowMark } from "../shadow/Shadow.ts"
import { Misfit } from "../thing-model/DataType.ts"
import type { ModelValidator } from "../thing-model/ModelValidator.ts"
import { ChangeTracker } from "./ChangeTracker.ts"
import { maxReactions } from "./UplinkLimits.ts"
import type { UplinkFacts } from "./UplinkStore.ts"

/** Maps a property or event to what the device must know of it: why it was not kept, or that its time does not count. */
export type Remarks = Readonly<Record<string, string>>

/** A state to which a device can be set back: the start of a message. */
export interface StateMark {
  readonly draft: ShadowMark
  readonly happened: number
  readonly timesAhead: number
}

/** Ends the update of a message that sets off too much. */
class TooManyReactions extends Error {}

/**
 * The shadow of a device with what must be stored beside it. Most messages set off
 * nothing: a state follows changes of properties only if it is asked to, and
 * otherwise says when it would have had to (`mustFollow`).
 */
export class DeviceState {
  readonly device: DeviceIdentity
  /** The shadow of the device. Call `accept` after a change. */
  readonly draft: ShadowDraft
  /** Checks values against the product's thing model; undefined: every value is admitted. */
  readonly validator: ModelValidator | undefined
  #timesAhead = 0
  readonly #happened: Array<DomainEvent> = []
  readonly #pending: Array<Reaction> = []
  /** Reactions before the current message. */
  #pendingBefore = 0
  readonly #reactions: Pick<Reactions["Service"], "watches" | "propertyWatch" | "reactTo">
  /** Says which changes of properties something reacts to; undefined: nothing reacts. */
  readonly #propertyWatch: PropertyWatch | undefined
  /** Whether changes of properties are followed, so that reactions are found. */
  readonly follows: boolean
  #mustFollow = false

  constructor(
    device: DeviceIdentity,
    shadow: Shadow,
    model: ModelValidator | undefined,
    reactions: Pick<Reactions["Service"], "watches" | "propertyWatch" | "reactTo">,
    follows: boolean
  ) {
    this.device = device
    this.draft = new ShadowDraft(shadow, model?.hasProperty)
    this.validator = device.validateType === "weak" ? model : undefined
    this.#reactions = reactions
    this.#propertyWatch = reactions.propertyWatch(device)
    this.follows = follows
  }

  /** What has happened and the reactions to it, to store with the shadow. */
  get facts(): UplinkFacts {
    return { happened: this.#happened, reactions: this.#pending }
  }

  /** Values and events whose time was too far ahead. */
  get timesAhead(): number {
    return this.#timesAhead
  }

  /** Whether anything reacts to what this device reports. */
  get mayReact(): boolean {
    return this.#propertyWatch !== undefined || this.#reactions.watches("EventReported", this.device)
  }

  /** Whether something may react to a change that was not followed: the updates count for nothing. */
  get mustFollow(): boolean {
    return this.#mustFollow
  }

  /** Begins a message. An update of it throws when it sets off more than 100 reactions. */
  begin(): void {
    this.#pendingBefore = this.#pending.length
  }

  /** How many reactions the message has set off. */
  get reactions(): number {
    return this.#pending.length - this.#pendingBefore
  }

  /** Marks the start of a message. */
  mark(): StateMark {
    return { draft: this.draft.mark(), happened: this.#happened.length, timesAhead: this.#timesAhead }
  }

  /** Takes back everything since the mark, which is the start of the message. */
  rollBack({ draft, happened, timesAhead }: StateMark): void {
    this.draft.rollBack(draft)
    this.#happened.length = happened
    this.#pending.length = this.#pendingBefore
    this.#timesAhead = timesAhead
  }

  /**
   * Keeps the reported values that the model admits and the shadow has room for;
   * returns the others with reasons, and those whose time does not count. A value
   * that is older than the stored one goes into the history only. `version` is the version of the shadow afterwards;
   * default: the next one.
   */
  report(
    values: Iterable<readonly [id: string, entry: ShadowEntry]>,
    receivedAt: number,
    version?: number
  ): Remarks {
    let remarks: Record<string, string> | undefined
    const kept: Record<string, ShadowEntry> = {}
    let earlier: Array<PropertySample> | undefined
    const watch = this.#propertyWatch
    const tracker = watch === undefined || !this.follows
      ? undefined
      : new ChangeTracker(
        this.draft,
        watch,
        (properties) => this.#react({ _tag: "PropertiesChanged", device: this.#named, at: receivedAt, properties })
      )
    for (const [id, { time: given, value }] of values) {
      const admitted = this.validator === undefined ? value : this.validator.reported(id, value)
      if (admitted instanceof Misfit) {
        ;(remarks ??= {})[id] = admitted.message
        continue
      }
      const time = countedTime(given, receivedAt)
      const entry = new ReportedValue(admitted, time)
      const stored = time > receivedAt ? new AheadValue(admitted, time, receivedAt) : entry
      if (tracker !== undefined) tracker.setting(id)
      else if (watch?.mayFire(id, admitted) === true && (Object.hasOwn(kept, id) || this.#isOther(id, admitted))) {
        this.#mustFollow = true
      }
      const reason = this.draft.set("reported", id, stored, receivedAt)
      if (reason !== undefined) {
        ;(remarks ??= {})[id] = reason
        continue
      }
      if (time !== given) {
        ;(remarks ??= {})[id] = aheadRemark
        this.#timesAhead++
      }
      tracker?.wasSet(id, stored, admitted)
      if (Object.hasOwn(kept, id)) (earlier ??= []).push({ propertyId: id, ...kept[id]! })
      kept[id] = entry
    }
    tracker?.finish()
    const isKept = Object.keys(kept).length > 0
    if (isKept || version !== undefined) this.draft.accept(receivedAt, version)
    if (isKept) {
      this.#happened.push({
        _tag: "PropertiesReported",
        device: this.device,
        at: receivedAt,
        properties: kept,
        ...earlier === undefined ? undefined : { earlier }
      })
    }
    return remarks ?? nothing
  }

  /** Keeps an event of the thing model. Returns undefined, or why the model does not admit the event. */
  occur(eventId: string, value: Json, time: number, receivedAt: number): Misfit | undefined {
    if (this.validator === undefined) return this.record(eventId, value, time, receivedAt)
    const check = this.validator.event(eventId)
    if (check === undefined) return new Misfit(6300, `tsl parse: method not exist -> thing.event.${eventId}.post`)
    const admitted = check(value as Readonly<Record<string, Json>>)
    return admitted instanceof Misfit ? admitted : this.record(eventId, admitted, time, receivedAt)
  }

  /**
   * Keeps an event that the thing model does not describe. Returns undefined, or
   * why the event cannot be stored.
   */
  record(eventId: string, value: Json, given: number, receivedAt: number): Misfit | undefined {
    if (!isFiniteJson(value, maxEventNesting)) return notStorable
    const time = countedTime(given, receivedAt)
    if (time !== given) this.#timesAhead++
    this.#happened.push({ _tag: "EventReported", device: this.device, at: receivedAt, eventId, time, value })
    if (this.#reactions.watches("EventReported", this.device)) {
      this.#react({ _tag: "EventReported", device: this.#named, at: receivedAt, eventId, time, value })
    }
    return undefined
  }

  /** Whether the property has had another value, or none. */
  #isOther(id: string, value: Json): boolean {
    const { reported } = this.draft
    return !Object.hasOwn(reported, id) || !equalJson(reported[id]!.value, value)
  }

  get #named(): ChangedDevice {
    const { deviceId, deviceName, productKey } = this.device
    return { deviceId, productKey, deviceName }
  }

  #react(change: DeviceChange): void {
    for (const reaction of this.#reactions.reactTo(this.device.projectId, change)) {
      if (this.#pending.length - this.#pendingBefore > maxReactions) throw new TooManyReactions()
      this.#pending.push(reaction)
    }
  }
}

/** Levels of objects and arrays in the outputs of an event. */
const maxEventNesting = 32

const notStorable = new Misfit(460, `expected finite numbers, and at most ${maxEventNesting} levels`)

const nothing: Remarks = {}

// Classes and no literals: V8 allocates literals that wait for a commit as old objects (docs/decisions/0125-pauses.md).
class ReportedValue implements ShadowEntry {
  readonly value: Json
  readonly time: number

  constructor(value: Json, time: number) {
    this.value = value
    this.time = time
  }
}

/** As the shadow keeps a value whose time is ahead of the cloud. */
class AheadValue extends ReportedValue {
  readonly receivedAt: number

  constructor(value: Json, time: number, receivedAt: number) {
    super(value, time)
    this.receivedAt = receivedAt
  }
}
