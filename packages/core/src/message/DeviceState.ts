/**
 * What the messages of one device in a batch make of its state, in their order.
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { DomainEvent } from "../event/DomainEvent.ts"
import type { Json, Shadow, ShadowEntry } from "../shadow/Shadow.ts"
import { isFiniteJson, ShadowDraft } from "../shadow/Shadow.ts"
import type { EventRecord, Facts, PropertySample } from "../telemetry/Telemetry.ts"
import { Misfit } from "../thing-model/DataType.ts"
import type { ModelValidator } from "../thing-model/ModelValidator.ts"
import type { DeviceReply } from "./DeviceReply.ts"

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

  constructor(device: DeviceIdentity, shadow: Shadow, validator: ModelValidator | undefined) {
    this.device = device
    this.draft = new ShadowDraft(shadow)
    this.validator = validator
  }

  get facts(): Facts {
    return { samples: this.#samples, events: this.#events }
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
    for (const [id, { time, value }] of values) {
      const admitted = this.validator === undefined ? value : this.validator.reported(id, value)
      if (admitted instanceof Misfit) {
        ;(dropped ??= {})[id] = admitted.message
        continue
      }
      const entry = { value: admitted, time }
      const reason = this.draft.set("reported", id, entry)
      if (reason !== undefined) {
        ;(dropped ??= {})[id] = reason
        continue
      }
      kept[id] = entry
      this.#samples.push({ propertyId: id, time, value: admitted })
    }
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
    return undefined
  }
}

/** Objects and arrays inside each other in the outputs of an event. */
const maxEventNesting = 32

const notStorable = new Misfit(460, `expected finite numbers, and at most ${maxEventNesting} levels`)

const nothing: Dropped = {}
