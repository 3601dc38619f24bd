/**
 * The subscriptions of one connection: how many it may have, and the quality of
 * service that they set for a topic.
 */
import { ownerKey } from "@device-cloud/alink"
import type { Client } from "aedes"
import { subscriptionsOf } from "../protocol/AedesInternals.ts"
import { covers, hasWildcard } from "./TopicFilter.ts"

/** Subscriptions of one session: a gateway has some for each of its 1,500 sub-devices. */
const maxSubscriptions = 25_000

/** Subscriptions of one session that belong to one device. */
const maxOfDevice = 250

/** Bytes and levels of a filter; the broker keeps it as long as the session. */
const maxFilterBytes = 512
const maxFilterLevels = 16

/** Filters with wildcards for each device; the broker compares all of them with each topic of the device. */
const maxWildcards = 100

/** Filters that a device has unsubscribed from and that are remembered. */
const maxStopped = 100

/** Topics of one connection whose quality of service is remembered. */
const maxRememberedTopics = 64

interface OfDevice {
  readonly all: Set<string>
  /** Those with wildcards. */
  readonly wildcards: Set<string>
}

/** Returns the devices on whose shadow topics the filters are. */
export const shadowOwnersOf = (filters: ReadonlyArray<string>): ReadonlyArray<string> =>
  filters.flatMap((filter) => filter.startsWith("/shadow/get/") ? [ownerKey(filter)] : [])

export class Subscriptions {
  readonly #client: Client
  #count = 0
  /** Filters by the device that they belong to. */
  readonly #filters = new Map<string, OfDevice>()
  /** Filters that the device has unsubscribed from in this connection. */
  readonly #stopped = new Set<string>()
  /** The quality of service by topic. */
  readonly #qos = new Map<string, 0 | 1>()

  constructor(client: Client) {
    this.#client = client
  }

  /** Whether there is none. */
  isEmpty(): boolean {
    return Object.keys(subscriptionsOf(this.#client)).length === 0
  }

  /** The devices to whose shadow topics there are subscriptions. */
  shadowOwners(): ReadonlyArray<string> {
    return shadowOwnersOf(Object.keys(subscriptionsOf(this.#client)))
  }

  /** Counts a subscription to a topic or filter; returns false if there is no room for it. */
  admit(filter: string): boolean {
    if (Object.hasOwn(subscriptionsOf(this.#client), filter)) return true
    if (this.#count >= maxSubscriptions || Buffer.byteLength(filter) > maxFilterBytes) return false
    if (filter.split("/").length > maxFilterLevels) return false
    const owner = ownerKey(filter)
    const filters = this.#filters.get(owner) ?? { all: new Set(), wildcards: new Set() }
    if (filters.all.size >= maxOfDevice) return false
    if (hasWildcard(filter)) {
      if (filters.wildcards.size >= maxWildcards) return false
      filters.wildcards.add(filter)
    }
    filters.all.add(filter)
    this.#filters.set(owner, filters)
    this.#count++
    return true
  }

  /** The broker has added subscriptions to these filters. */
  added(filters: ReadonlyArray<string>): void {
    for (const filter of filters) this.#stopped.delete(filter)
    this.#qos.clear()
  }

  /** The broker has removed these subscriptions. */
  removed(filters: ReadonlyArray<string>): void {
    for (const filter of filters) {
      if (this.#stopped.size < maxStopped && Buffer.byteLength(filter) <= maxFilterBytes) this.#stopped.add(filter)
      const owner = ownerKey(filter)
      const ofDevice = this.#filters.get(owner)
      if (!ofDevice?.all.delete(filter)) continue
      this.#count--
      ofDevice.wildcards.delete(filter)
      if (ofDevice.all.size === 0) this.#filters.delete(owner)
    }
    this.#qos.clear()
  }

  /** Returns the quality of service with which the device receives a topic: 1 unless its subscriptions say 0. */
  qosOf(topic: string): 0 | 1 {
    const known = this.#qos.get(topic)
    if (known !== undefined) return known
    const qos = this.granted(topic) === 0 ? 0 : 1
    if (this.#qos.size < maxRememberedTopics) this.#qos.set(topic, qos)
    return qos
  }

  /** Returns the highest quality of service of the subscriptions to a topic; undefined: there is none. */
  granted(topic: string): number | undefined {
    const subscriptions = subscriptionsOf(this.#client)
    const wildcards = this.#filters.get(ownerKey(topic))?.wildcards ?? []
    const granted = [topic, ...wildcards].flatMap((filter) =>
      Object.hasOwn(subscriptions, filter) && covers(filter, topic) ? [subscriptions[filter]!.qos] : []
    )
    return granted.length === 0 ? undefined : Math.max(...granted)
  }

  /** Whether the device has unsubscribed from a topic in this connection. */
  isStopped(topic: string): boolean {
    if (this.#stopped.size === 0) return false
    return [...this.#stopped].some((filter) => covers(filter, topic)) && this.granted(topic) === undefined
  }
}
