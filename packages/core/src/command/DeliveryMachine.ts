/**
 * The delivery of commands to one session, as a pure state machine. Commands arrive in
 * two ways: one by one as they are stored, on this node or another one, and from the
 * store, which is read when the device connects, when its connection was too slow, and
 * when a command has come between that this node has not seen. The machine keeps
 * their order and delivers none twice, whatever is lost, doubled or late on the way
 * (docs/decisions/0089-commands-in-commit-order.md).
 */

/**
 * `starting`: the device is being attached. `reading`: commands are read from the
 * store; new ones are found there. `delivering`: a command is being handed to the
 * connection. `open`: the next command is delivered at once.
 */
export interface Delivery {
  readonly phase: "starting" | "reading" | "delivering" | "open"
  /** All commands of the device up to this message id were handed to the connection, or need it no longer. */
  readonly lastKnown: number
  /** The largest message id of the device that this node has heard of. */
  readonly lastHeard: number
  /** The reading finds all commands up to this message id: they were stored when it began. */
  readonly readsTo: number
}

/** What to do next: nothing, read the store, or hand the command to the connection. */
export type Next = "nothing" | "read" | "deliver"

type Step = readonly [delivery: Delivery, next: Next]

/** A command as it was stored. */
export interface StoredCommand {
  readonly messageId: number
  /** The message id of the device's command before it; 0: none; undefined: it is not known. */
  readonly previous: number | undefined
}

export const starting: Delivery = { phase: "starting", lastKnown: 0, lastHeard: 0, readsTo: 0 }

const hear = (delivery: Delivery, messageId: number): Delivery =>
  messageId > delivery.lastHeard ? { ...delivery, lastHeard: messageId } : delivery

/** Opens the delivery, or reads what has been heard of and is not known. */
const goOn = (delivery: Delivery): Step => {
  if (delivery.lastHeard > delivery.lastKnown) return [{ ...delivery, phase: "reading" }, "read"]
  return [delivery.phase === "open" ? delivery : { ...delivery, phase: "open" }, "nothing"]
}

/** The device is attached. `isAwaited`: the store holds something for it. `lastCommand`: the message id of its latest command. */
export const attached = (delivery: Delivery, isAwaited: boolean, lastCommand: number): Step => {
  const heard = hear(delivery, lastCommand)
  return isAwaited
    ? [{ ...heard, phase: "reading" }, "read"]
    : goOn({ ...heard, lastKnown: Math.max(heard.lastKnown, lastCommand) })
}

/** A command is stored. `isBlocked`: the connection has no room for it now. */
export const stored = (delivery: Delivery, { messageId, previous }: StoredCommand, isBlocked: boolean): Step => {
  if (messageId <= delivery.lastKnown) return [delivery, "nothing"]
  const heard = hear(delivery, messageId)
  if (delivery.phase !== "open") return [heard, "nothing"]
  const isNext = previous !== undefined && previous <= delivery.lastKnown
  return isNext && !isBlocked ? [{ ...heard, phase: "delivering" }, "deliver"] : goOn(heard)
}

/** The store holds commands of the device up to this message id. */
export const noticed = (delivery: Delivery, lastCommand: number): Step => {
  const heard = hear(delivery, lastCommand)
  return delivery.phase === "open" ? goOn(heard) : [heard, "nothing"]
}

/** The command has been handed to the connection, as `stored` has asked for. */
export const delivered = (delivery: Delivery, messageId: number): Step => goOn(known(delivery, messageId))

/** A reading of the store begins. */
export const beginRead = (delivery: Delivery): Delivery => ({ ...delivery, readsTo: delivery.lastHeard })

/** A command that was read, after all before it, has been handed to the connection, or needs that no longer. */
export const known = (delivery: Delivery, messageId: number): Delivery => ({
  ...delivery,
  lastKnown: Math.max(delivery.lastKnown, messageId)
})

/** The store holds no more commands. Returns `read` if one came while it was read. */
export const readToEnd = (delivery: Delivery): Step => goOn(known(delivery, delivery.readsTo))

/** Reading has failed. The next command or notice starts it again. */
export const readFailed = (delivery: Delivery): Delivery => ({ ...delivery, phase: "open" })
