/**
 * {@link KeptSessions} as the persistence of aedes. This broker keeps neither
 * messages nor wills, so the members for these have no effect.
 */
import type { AedesPublishPacket, Client } from "aedes"
import { Readable } from "node:stream"
import type { KeptSessions } from "./KeptSessions.ts"

/** A subscription that a client asks for. */
export interface Wanted {
  readonly topic: string
  readonly qos: number
}

type WithId = Pick<Client, "id">
type Numbered = Pick<AedesPublishPacket, "messageId">

const nothing = () => Readable.from([])

const idOf = ({ messageId }: Numbered): number => messageId ?? 0

/**
 * Aedes calls `addSubscriptions` with all subscriptions of a SUBSCRIBE each time
 * it grants one, also with those that were refused: `granted` returns the one.
 */
export const persistenceOf = (kept: KeptSessions, granted: () => Wanted | undefined) => ({
  // Aedes checks that this is an async function.
  setup: async () => {},
  destroy: async () => {},

  subscriptionsByClient: async ({ id }: WithId) => kept.subscriptions(id),
  addSubscriptions: async ({ id }: WithId) => {
    const wanted = granted()
    if (wanted !== undefined) kept.subscribe(id, wanted.topic, wanted.qos)
  },
  removeSubscriptions: async ({ id }: WithId, filters: ReadonlyArray<string>) => kept.unsubscribe(id, filters),
  cleanSubscriptions: async ({ id }: WithId) => kept.end(id),

  /** A packet is kept before it is consumed; one that is not there any more is of a session that has ended. */
  incomingStorePacket: async () => {},
  incomingGetPacket: async ({ id }: WithId, packet: Numbered) => {
    if (!kept.hasBegun(id, idOf(packet))) throw new Error("no such packet")
    return packet
  },
  incomingDelPacket: async ({ id }: WithId, packet: Numbered) => {
    if (!kept.complete(id, idOf(packet))) throw new Error("no such packet")
  },
  /** Aedes calls it for clients with a clean session, at the start and at the end of the connection. */
  cleanIncoming: async ({ id }: WithId) => kept.end(id),

  createRetainedStreamCombi: nothing,
  outgoingStream: nothing,
  outgoingClearMessageId: async () => undefined,
  outgoingUpdate: async () => undefined,
  delWill: async () => undefined,
  streamWill: nothing
})
