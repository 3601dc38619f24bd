/**
 * Addresses from which somebody was authenticated lately, over MQTT or HTTP. When
 * there is no room for new connections, a part of it is for these.
 */
import { Clock, Context, Effect, Layer } from "effect"

export class KnownAddresses extends Context.Service<KnownAddresses, {
  readonly has: (address: string) => boolean
  /** Somebody at this address has been authenticated. */
  readonly add: (address: string) => void
}>()("@device-cloud/core/kernel/KnownAddresses") {
  static readonly layer: Layer.Layer<KnownAddresses> = Layer.effect(
    KnownAddresses,
    Effect.map(Clock.Clock, (clock) => makeKnownAddresses(() => clock.currentTimeMillisUnsafe()))
  )
}

/** Addresses that are remembered at least, if there are so many; at most twice as many. */
const capacity = 50_000

/** Milliseconds for which an address is remembered at least, unless there are too many; at most twice as long. */
const lifetime = 12 * 3_600_000

/** `now` returns Unix milliseconds. Two sets take turns: an address costs no time stamp and no timer. */
export const makeKnownAddresses = (now: () => number): KnownAddresses["Service"] => {
  let current = new Set<string>()
  let previous = new Set<string>()
  let since = now()

  const turn = (): void => {
    const at = now()
    if (current.size < capacity && at - since < lifetime) return
    // After two lifetimes without a call nothing is remembered.
    previous = at - since < 2 * lifetime ? current : new Set()
    current = new Set()
    since = at
  }

  return {
    has: (address) => {
      turn()
      return current.has(address) || previous.has(address)
    },
    add: (address) => {
      turn()
      current.add(address)
    }
  }
}
