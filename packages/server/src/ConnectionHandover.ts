/** What `node:cluster` leaves open when a worker is killed (docs/decisions/0090-workers.md). */
import type { ChildProcess } from "node:child_process"
import type { Worker } from "node:cluster"

/** Messages of `node:cluster` between the process that accepts connections and one that serves them. */
interface ClusterMessage {
  readonly act?: unknown
  readonly seq?: number
  readonly ack?: number
}

/** What `ChildProcess` has and its types do not name. */
interface Channel {
  /** Closes the channel, also while a connection is on its way through it. */
  _disconnect(): void
}

/**
 * Closes the connections that are on their way to a worker when it ends, and sends it no more.
 *
 * `node:cluster` keeps its own end of a connection until the worker confirms that it has it. A worker that is killed
 * before never does: the connection would stay open with nobody at its other end. The event that takes the worker
 * from those that are sent connections waits for the same confirmation.
 */
export const closeWithWorker = (worker: Worker): void => {
  const process = worker.process as ChildProcess & Channel
  const send = process.send!.bind(process) as (message: ClusterMessage, ...rest: ReadonlyArray<unknown>) => boolean
  const unconfirmed = new Set<number>()
  process.send = (message: ClusterMessage, ...rest: ReadonlyArray<unknown>) => {
    if (message.act === "newconn") unconfirmed.add(message.seq!)
    return send(message, ...rest)
  }
  process.on("internalMessage", ({ ack }: ClusterMessage) => {
    if (ack !== undefined) unconfirmed.delete(ack)
  })
  process.once("exit", () => {
    // Nothing more is read: a confirmation that came now would send what is closed below.
    if (process.connected) process.disconnect()
    if (process.channel) process._disconnect()
    process.emit("disconnect")
    // A confirmation closes the end that was kept.
    for (const ack of unconfirmed) process.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted: true })
  })
}
