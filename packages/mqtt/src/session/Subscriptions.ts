/**
 * The subscriptions of one connection: how many it may have, and the quality of
 * service that they set for a topic.
 */
import type { Client } from "aedes"
import { subscriptionsOf } from "../protocol/AedesInternals.ts"
import { covers, hasWildcard } from "../topics/TopicFilter.ts"
import { ownerKey } from "../topics/TopicOwner.ts"

/** Subscriptions of one session: a gateway has some for each of its 1,500 sub-devices. */
const maxSubscriptions = 25_000

/** Characters and levels of a filter; the broker keeps it as long as the session. */
const maxFilterLength = 512
const maxFilterLevels = 16

/** Filters with wildcards for each device; the broker compares all of them with each topic of the device. */
const maxWildcards = 100

/** Topics of one connection whose quality of service is remembered. */
const maxRememberedTopics = 64

export class Subscriptions {
  readonly #client: Client
  #count = 0
  /** Filters with wildcards, by the device that they belong to. */
  readonly #wildcards = new Map<string, Set<string>>()
  /** The quality of service by topic. */
  readonly #qos = new Map<string, 0 | 1>()

  constructor(client: Client) {
    this.#client = client
  }

  /** Counts a subscription to a topic or filter; returns false if there is no room for it. */
  admit(filter: string): boolean {
    if (Object.hasOwn(subscriptionsOf(this.#client), filter)) return true
    if (this.#count >= maxSubscriptions || filter.length > maxFilterLength) return false
    if (filter.split("/").length > maxFilterLevels) return false
    if (hasWildcard(filter)) {
      const owner = ownerKey(filter)
      const wildcards = this.#wildcards.get(owner) ?? new Set()
      if (wildcards.size >= maxWildcards) return false
      this.#wildcards.set(owner, wildcards.add(filter))
    }
    this.#count++
    return true
  }

  /** The broker has added subscriptions. */
  added(): void {
    this.#qos.clear()
  }

  /** The broker has removed these subscriptions. */
  removed(filters: ReadonlyArray<string>): void {
    this.#count = Object.keys(subscriptionsOf(this.#client)).length
    for (const filter of filters) this.#wildcards.get(ownerKey(filter))?.delete(filter)
    this.#qos.clear()
  }

  /** Returns the quality of service with which the device receives a topic: 1 unless its subscriptions say 0. */
  qosOf(topic: string): 0 | 1 {
    const known = this.#qos.get(topic)
    if (known !== undefined) return known
    const subscriptions = subscriptionsOf(this.#client)
    const wildcards = this.#wildcards.get(ownerKey(topic)) ?? []
    const granted = [topic, ...wildcards].flatMap((filter) =>
      Object.hasOwn(subscriptions, filter) && covers(filter, topic) ? [subscriptions[filter]!.qos] : []
    )
    const qos = granted.length > 0 && Math.max(...granted) === 0 ? 0 : 1
    if (this.#qos.size < maxRememberedTopics) this.#qos.set(topic, qos)
    return qos
  }
}
