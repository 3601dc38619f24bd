/**
 * What the history of presence tells: when a device was online, and through which
 * connections.
 */
import type { api } from "../../../api/client.ts"
import type { Data } from "../../../api/Operations.ts"

export type Presence = Data<typeof api.devices.readPresence>
type Change = Presence["results"][number]

/** A stretch of time with one state. Times are Unix milliseconds. */
export interface Stretch {
  readonly from: number
  readonly to: number
  readonly state: "online" | "offline" | "unknown"
}

/** What came between two changes of the status. */
export interface Connection {
  readonly key: string
  /** ISO 8601; undefined: earlier than what is told. */
  readonly from: string | undefined
  /** ISO 8601; undefined: it goes on, or ends later than what is told. */
  readonly to: string | undefined
  readonly address: string
  readonly transport: string
  readonly node: string
  readonly gateway: Change["gateway"]
  /** Why it has ended; undefined: another connection took its place, or it has not ended. */
  readonly reason: string | undefined
  readonly isReplaced: boolean
}

/** The states of the device between two times, the first first. Before it was created it has none. */
export const stretches = (
  { cursor, results, since, status }: Presence,
  createdAt: number,
  from: number,
  to: number
): ReadonlyArray<Stretch> => {
  const changes = results
    .flatMap(({ kind, time }) => kind === "takeover" ? [] : [{ at: Date.parse(time), state: kind }])
    .toReversed()
  // It is older than the history.
  if (changes.length === 0 && since !== "" && status !== "unactive") {
    changes.push({ at: Date.parse(since), state: status })
  }
  const [first] = changes
  const before = first === undefined ? "offline" : first.state === "online" ? "offline" : "online"
  const all: ReadonlyArray<Pick<Stretch, "state"> & { readonly at: number }> = [{
    at: createdAt,
    state: cursor === "" ? before : "unknown"
  }, ...changes]
  return all.flatMap(({ at, state }, i): ReadonlyArray<Stretch> => {
    const stretch = { from: Math.max(at, from), to: Math.min(all[i + 1]?.at ?? to, to), state }
    return stretch.from < stretch.to ? [stretch] : []
  })
}

/** The share of the time that the device was online, of the time that is known; undefined: none is. */
export const onlineShare = (all: ReadonlyArray<Stretch>): number | undefined => {
  const lengthOf = (state: Stretch["state"]) =>
    all.reduce((sum, stretch) => stretch.state === state ? sum + stretch.to - stretch.from : sum, 0)
  const [online, offline] = [lengthOf("online"), lengthOf("offline")]
  return online + offline === 0 ? undefined : online / (online + offline)
}

/** The connections that the history tells of, the latest first. */
export const connectionsOf = ({ results, since, status }: Presence, isLatest: boolean): ReadonlyArray<Connection> => {
  const connections: Array<Connection> = []
  let open: Change | undefined
  const end = (change: Change, isReplaced: boolean) => {
    const begun = open ?? change
    connections.push({
      key: begun.entry_id,
      from: open?.time,
      to: change.time,
      // What replaces a connection tells of itself.
      address: open === undefined && isReplaced ? "" : begun.address,
      transport: open === undefined && isReplaced ? "" : begun.transport,
      node: open === undefined && isReplaced ? "" : begun.node,
      gateway: open === undefined && isReplaced ? null : begun.gateway,
      reason: isReplaced ? undefined : change.reason,
      isReplaced
    })
  }
  for (const change of results.toReversed()) {
    if (change.kind === "offline") end(change, false)
    else if (change.kind === "takeover") end(change, true)
    open = change.kind === "offline" ? undefined : change
  }
  if (open !== undefined) {
    const { address, entry_id: key, gateway, node, time: from, transport } = open
    connections.push({
      key,
      from,
      to: undefined,
      address,
      transport,
      node,
      gateway,
      reason: undefined,
      isReplaced: false
    })
  } else if (results.length === 0 && isLatest && status === "online") {
    const unknown = { address: "", transport: "", node: "", gateway: null, reason: undefined, isReplaced: false }
    connections.push({ key: since, from: since, to: undefined, ...unknown })
  }
  return connections.toReversed()
}
