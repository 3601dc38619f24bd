/**
 * Downloads of devices that reach their cloud over a network.
 */
import { Effect } from "effect"
import { LinkError } from "./DeviceLink.ts"

/** Returns the bytes at an address. */
export const fetchBytes = (url: string): Effect.Effect<Uint8Array, LinkError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, { signal })
      if (!response.ok) throw new Error(`status ${response.status}`)
      return new Uint8Array(await response.arrayBuffer())
    },
    catch: (error) => new LinkError({ reason: `${url}: ${error instanceof Error ? error.message : String(error)}` })
  })
