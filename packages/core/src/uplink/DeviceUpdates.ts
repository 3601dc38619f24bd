/**
 * The updates of one device in a batch, and how they run. Pure.
 */
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { Shadow } from "../shadow/Shadow.ts"
import { checkedReply } from "./CheckedReply.ts"
import type { Update } from "./DeviceMethod.ts"
import { type DeviceReply, systemError } from "./DeviceReply.ts"
import type { DeviceState } from "./DeviceState.ts"
import type { ReactionBudget } from "./ReactionBudget.ts"
import { maxReactions, tooManyReactions } from "./UplinkLimits.ts"
import type { DeviceCommit } from "./UplinkStore.ts"

/** An update with its place in the batch, and the one after it. */
export class PlacedUpdate {
  readonly place: number
  readonly update: Update
  /** The budget of a message about several devices; undefined: the message is about this device alone. */
  readonly budget: ReactionBudget | undefined
  next: PlacedUpdate | undefined = undefined

  constructor(place: number, update: Update, budget: ReactionBudget | undefined) {
    this.place = place
    this.update = update
    this.budget = budget
  }
}

/**
 * The updates of one device, linked in their order. Neither arrays nor literals: V8
 * allocates those that wait for a commit as old objects (docs/decisions/0125-pauses.md).
 */
export class DeviceUpdates {
  readonly device: DeviceIdentity
  readonly first: PlacedUpdate
  #last: PlacedUpdate

  constructor(device: DeviceIdentity, first: PlacedUpdate) {
    this.device = device
    this.first = first
    this.#last = first
  }

  add(update: PlacedUpdate): void {
    this.#last.next = update
    this.#last = update
  }
}

/** The outcome of the updates of one device. */
export interface DeviceResult {
  /** In the order of the updates. */
  readonly replies: ReadonlyArray<DeviceReply>
  /** Reactions are stored, so that their runner must wake. */
  readonly reacts: boolean
  /** Values and events whose time was too far ahead. */
  readonly timesAhead: number
  /** What updates have thrown. */
  readonly defects: ReadonlyArray<unknown>
}

/**
 * Returns the part of the transaction that belongs to one device. An update that
 * throws, or gives no reply, is refused with `systemError`; the others run again from the stored
 * shadow without it. An update that sets off too many reactions is taken back. If
 * something may react to a change of a property, all run again in a state that
 * follows changes: that costs a report a microsecond, and few reports need it.
 */
export const commitOf = (
  ofDevice: DeviceUpdates,
  open: (device: DeviceIdentity, shadow: Shadow, follows: boolean) => DeviceState
): DeviceCommit<DeviceResult> =>
  new UpdatesCommit(ofDevice.device.deviceId, (shadow) => {
    const defects = new Map<Update, unknown>()
    let follows = false
    while (true) {
      const state = open(ofDevice.device, shadow, follows)
      const replies = applyAll(ofDevice, state, defects)
      if (replies === "again") continue
      if (replies === "following") {
        follows = true
        continue
      }
      const { facts, timesAhead } = state
      return [
        { replies, reacts: facts.reactions.length > 0, timesAhead, defects: [...defects.values()] },
        state.draft.finish(),
        facts
      ]
    }
  })

class UpdatesCommit implements DeviceCommit<DeviceResult> {
  readonly deviceId: DeviceId
  readonly update: DeviceCommit<DeviceResult>["update"]

  constructor(deviceId: DeviceId, update: DeviceCommit<DeviceResult>["update"]) {
    this.deviceId = deviceId
    this.update = update
  }
}

/**
 * Returns the replies of the updates. `again`: one has thrown and is in `defects` from
 * now on. `following`: they have to run in a state that follows changes.
 */
const applyAll = (
  { device: { deviceId }, first }: DeviceUpdates,
  state: DeviceState,
  defects: Map<Update, unknown>
): ReadonlyArray<DeviceReply> | "again" | "following" => {
  const replies: Array<DeviceReply> = []
  const { follows, mayReact } = state
  for (let each: PlacedUpdate | undefined = first; each !== undefined; each = each.next) each.budget?.forget(deviceId)
  for (let each: PlacedUpdate | undefined = first; each !== undefined; each = each.next) {
    const { budget, update } = each
    if (defects.has(update)) {
      replies.push(systemError)
      continue
    }
    if (budget?.isOverspent === true) {
      replies.push(tooManyReactions)
      continue
    }
    const start = mayReact && follows ? state.mark() : undefined
    state.begin()
    let reply: DeviceReply = tooManyReactions
    try {
      reply = checkedReply(update(state))
    } catch (defect) {
      if (!state.mustFollow && state.reactions <= maxReactions) {
        defects.set(update, defect)
        return "again"
      }
    }
    if (state.mustFollow) return "following"
    if (!mayReact || admits(state.reactions, deviceId, budget)) replies.push(reply)
    else if (start === undefined) return "following"
    else {
      state.rollBack(start)
      replies.push(tooManyReactions)
    }
  }
  return replies
}

/** Whether a message may set off this many reactions on the device. */
const admits = (reactions: number, deviceId: DeviceId, budget: ReactionBudget | undefined): boolean =>
  budget === undefined ? reactions <= maxReactions : budget.spend(deviceId, reactions)
