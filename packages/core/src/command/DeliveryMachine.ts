/**
 * The delivery of commands to one connection, as a pure state machine. Commands
 * arrive in two ways: one by one as this node stores them, and from the store,
 * which is read when the device connects, when its connection was too slow, and
 * when another node has stored a command. The machine keeps their order and
 * delivers none twice.
 */

/**
 * `starting`: the device is being attached. `reading`: commands are read from the
 * store; new ones are found there. `open`: a new command is delivered at once.
 */
export interface Delivery {
  readonly phase: "starting" | "reading" | "open"
  /** A command came while the store was being read: the store must be read again. */
  readonly isStale: boolean
  /** The message id of the latest command that was handed to the connection; 0: none. */
  readonly lastDelivered: number
}

/** What to do next: nothing, read the store, or hand the command to the connection. */
export type Next = "nothing" | "read" | "deliver"

type Step = readonly [delivery: Delivery, next: Next]

export const starting: Delivery = { phase: "starting", isStale: false, lastDelivered: 0 }

const reading = (delivery: Delivery): Delivery => ({ ...delivery, phase: "reading" })

/** The device is attached. `isAwaited`: the store holds commands for it. */
export const attached = (delivery: Delivery, isAwaited: boolean): Step =>
  isAwaited || delivery.isStale ? [reading(delivery), "read"] : [{ ...delivery, phase: "open" }, "nothing"]

/** This node has stored a command. `isBlocked`: the connection has no room for it now. */
export const stored = (delivery: Delivery, messageId: number, isBlocked: boolean): Step => {
  if (delivery.phase !== "open") return [{ ...delivery, isStale: true }, "nothing"]
  // The store may have been read between the commit and this turn.
  if (messageId <= delivery.lastDelivered) return [delivery, "nothing"]
  return isBlocked ? [reading(delivery), "read"] : [delivery, "deliver"]
}

/** The store may hold commands that this node has not seen. */
export const noticed = (delivery: Delivery): Step =>
  delivery.phase === "open" ? [reading(delivery), "read"] : [{ ...delivery, isStale: true }, "nothing"]

/** A reading of the store begins. */
export const beginRead = (delivery: Delivery): Delivery => ({ ...delivery, isStale: false })

/** The store holds no more commands. Returns `read` if one came while it was read. */
export const readToEnd = (delivery: Delivery): Step =>
  delivery.isStale ? [delivery, "read"] : [{ ...delivery, phase: "open" }, "nothing"]

/** Reading has failed. The next command or notice starts it again. */
export const readFailed = (delivery: Delivery): Delivery => ({ ...delivery, phase: "open" })

/** The command has been handed to the connection, or needs no delivery any more. */
export const delivered = (delivery: Delivery, messageId: number): Delivery => ({
  ...delivery,
  lastDelivered: messageId
})
