/**
 * A queue that is fair: its groups take turns, and within a group its keys. A
 * turn is a few entries of one key, in their order. An entry that comes behind
 * thousands of another key waits for one turn of them.
 *
 * An entry costs the same however many there are: groups, keys and entries are
 * linked lists, and only the lookup of a key asks a map.
 */

export interface Options {
  /** Entries in the queue. When there are more, it is full. */
  readonly capacity: number
  /** The weight of all entries in the queue. When it is more, the queue is full. */
  readonly maxWeight: number
  /**
   * A turn ends when its entries weigh as much. Light entries of one key leave
   * together, so that what is done for each key is done once for several.
   */
  readonly turnWeight: number
}

/** What the queue holds: subclasses add what the entry carries. */
export abstract class Entry {
  /** What the entry counts; a whole number, at least 1. */
  readonly weight: number
  /** The next entry of the same key. */
  next: this | undefined = undefined

  constructor(weight: number) {
    this.weight = weight
  }
}

/** First in, first out, linked by `next`. */
class Line<A extends { next: A | undefined }> {
  head: A | undefined = undefined
  #tail: A | undefined = undefined
  length = 0

  push(item: A): void {
    if (this.#tail === undefined) this.head = item
    else this.#tail.next = item
    this.#tail = item
    this.length++
  }

  shift(): A {
    const item = this.head!
    this.head = item.next
    item.next = undefined
    if (this.head === undefined) this.#tail = undefined
    this.length--
    return item
  }
}

/** The entries of one key. */
class Flow<A extends Entry> {
  readonly key: string
  readonly entries = new Line<A>()
  weight = 0
  /** The group while there are entries. */
  group: Group<A> | undefined = undefined
  next: Flow<A> | undefined = undefined

  constructor(key: string) {
    this.key = key
  }
}

/** The keys of one group that have entries. */
class Group<A extends Entry> {
  readonly name: string
  readonly flows = new Line<Flow<A>>()
  next: Group<A> | undefined = undefined

  constructor(name: string) {
    this.name = name
  }
}

/** Entries of one group after which the queue counts as its own. */
const ownAfter = 20_000

/** Keys and groups without entries that are kept: to make them anew for each entry costs more than the rest. */
const maxIdle = 16_384

export class FairQueue<A extends Entry> {
  readonly #options: Options
  readonly #flows = new Map<string, Flow<A>>()
  readonly #groups = new Map<string, Group<A>>()
  /** The groups that have entries; the next entry is of the first. */
  readonly #turns = new Line<Group<A>>()
  #size = 0
  #weight = 0
  /** The group that an entry came of last, and how many have come of it in a row. */
  #last = ""
  #inRow = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** The number of entries. */
  get size(): number {
    return this.#size
  }

  /** Whether several groups use the queue: of the latest entries, some are of another group. Those of the group "" do not count. */
  get isShared(): boolean {
    return this.#inRow < ownAfter
  }

  /**
   * Adds an entry, also to a full queue. Returns false if the queue is full and
   * the key holds more than its share of it: the capacity divided by the groups
   * with entries, and then by the keys of the group.
   */
  push(entry: A, key: string, groupName: string): boolean {
    if (groupName === this.#last) this.#inRow++
    else if (groupName !== "") {
      this.#last = groupName
      this.#inRow = 0
    }
    let flow = this.#flows.get(key)
    if (flow === undefined) this.#flows.set(key, flow = new Flow(key))
    let group = flow.group
    if (group === undefined) {
      group = this.#groupOf(groupName)
      if (group.flows.length === 0) this.#turns.push(group)
      group.flows.push(flow)
      flow.group = group
    }
    flow.entries.push(entry)
    flow.weight += entry.weight
    this.#size++
    this.#weight += entry.weight
    const { capacity, maxWeight } = this.#options
    if (this.#size <= capacity && this.#weight <= maxWeight) return true
    const shares = this.#turns.length * group.flows.length
    return flow.entries.length * shares <= capacity && flow.weight * shares <= maxWeight
  }

  /** Takes the next entries: at most `count`, together at most `maxWeight`, but one if there is any. */
  take(count: number, maxWeight: number): Array<A> {
    const { turnWeight } = this.#options
    const taken: Array<A> = []
    let room = maxWeight
    /** The weight of the current turn. */
    let spent = 0
    while (this.#size > 0 && taken.length < count) {
      const group = this.#turns.head!
      const flow = group.flows.head!
      const { weight } = flow.entries.head!
      if (weight > room && taken.length > 0) {
        if (spent > 0) this.#endTurn(group, flow)
        break
      }
      room -= weight
      spent += weight
      taken.push(flow.entries.shift())
      flow.weight -= weight
      this.#size--
      this.#weight -= weight
      if (spent < turnWeight && flow.entries.length > 0 && taken.length < count) continue
      this.#endTurn(group, flow)
      spent = 0
    }
    return taken
  }

  /** Puts a flow at the end of its group, and the group at the end of all, unless they are empty. */
  #endTurn(group: Group<A>, flow: Flow<A>): void {
    group.flows.shift()
    if (flow.entries.length > 0) group.flows.push(flow)
    else {
      flow.group = undefined
      if (this.#flows.size > maxIdle) this.#flows.delete(flow.key)
    }
    this.#turns.shift()
    if (group.flows.length > 0) this.#turns.push(group)
    else if (this.#groups.size > maxIdle) this.#groups.delete(group.name)
  }

  #groupOf(name: string): Group<A> {
    let group = this.#groups.get(name)
    if (group === undefined) this.#groups.set(name, group = new Group(name))
    return group
  }
}
