/**
 * Holds what the cloud acknowledged against what it stored, told and delivered.
 */
import type { CommandClient } from "./CommandClient.ts"
import type { Connection, DrillDevice, Receipt } from "./DrillDevice.ts"
import type { Told } from "./EventFollower.ts"

/** What there is of one device when everything has come to rest. */
export interface Account {
  readonly device: DrillDevice
  readonly clients: ReadonlyArray<CommandClient>
  readonly told: Told
  /** Numbers of the reports in its history, in no order. */
  readonly history: ReadonlyArray<number>
  /** States of its commands by message id. */
  readonly states: ReadonlyMap<number, string>
  /** What its status is according to the API. */
  readonly status: string
}

export const faultKinds = ["lost", "doubled", "outOfOrder", "falseStatus", "ghosts"] as const

/** Sentences of each kind. */
export type Faults = Readonly<Record<typeof faultKinds[number], Array<string>>>

export interface Counts {
  readonly acknowledged: number
  /** Deliveries again of commands whose replies nobody had acknowledged: a device has to expect them. */
  readonly again: number
  /** Those of them whose connection stayed open for long enough to hear the reply. */
  readonly needless: number
  readonly faults: Faults
}

/** Those that stand behind a larger one. */
const inversions = (values: Iterable<number>): ReadonlyArray<number> => {
  let highest = -Infinity
  return [...values].filter((value) => {
    if (value < highest) return true
    highest = value
    return false
  })
}

/** Those that stand there a second time. */
const repetitions = (values: Iterable<number>): ReadonlyArray<number> => {
  const seen = new Set<number>()
  return [...values].filter((value) => seen.has(value) || void seen.add(value))
}

const judgeReports = ({ device, history, told }: Account, faults: Faults): void => {
  const [stored, heard] = [new Set(history), new Set(told.reports)]
  const acknowledged = new Set(device.acknowledged)
  for (const n of acknowledged) {
    if (!stored.has(n)) faults.lost.push(`${device.id}: report ${n} is not in the history`)
    else if (!heard.has(n)) faults.lost.push(`${device.id}: report ${n} was not told`)
  }
  for (const n of repetitions(history)) faults.doubled.push(`${device.id}: report ${n} is stored twice`)
  for (const n of repetitions(told.reports)) faults.doubled.push(`${device.id}: report ${n} was told twice`)
  for (const n of inversions(told.reports.filter((n) => acknowledged.has(n)))) {
    faults.outOfOrder.push(`${device.id}: report ${n} was told behind a later one`)
  }
}

/** A cloud that ends a connection hears what came so many milliseconds before. */
const millisToHear = 500

/** Returns how many came again as they may, and how many of them needlessly. */
const judgeCommands = ({ clients, device, states }: Account, faults: Faults) => {
  const came = new Map<number, Receipt>()
  const byConnection = new Map<Connection, Array<number>>()
  let [again, needless] = [0, 0]
  for (const receipt of device.receipts) {
    const { connection, messageId, wasDone } = receipt
    const before = byConnection.get(connection) ?? []
    const earlier = came.get(messageId)
    if (before.includes(messageId)) faults.doubled.push(`${device.id}: command ${messageId} twice on one connection`)
    else if (wasDone) faults.doubled.push(`${device.id}: command ${messageId} after its reply was acknowledged`)
    else if (earlier !== undefined) {
      again++
      if ((earlier.connection.to ?? receipt.at) - earlier.at > millisToHear) needless++
    }
    came.set(messageId, receipt)
    byConnection.set(connection, [...before, messageId])
  }
  const late = inversions(came.keys())
  for (const id of late) faults.outOfOrder.push(`${device.id}: command ${id} came behind a later one`)
  for (const ids of byConnection.values()) {
    for (const id of inversions(new Set(ids)).filter((id) => !late.includes(id))) {
      faults.outOfOrder.push(`${device.id}: command ${id} came again behind a later one`)
    }
  }
  for (const { messageIds } of clients) {
    for (const id of messageIds) {
      const state = states.get(id)
      if (!came.has(id)) faults.lost.push(`${device.id}: command ${id} (${state}) did not come`)
      else if (state !== "succeeded") faults.lost.push(`${device.id}: command ${id} came and is ${state}`)
    }
    // A client that waits for each answer has its commands carried out in its order.
    for (const id of inversions(messageIds)) faults.outOfOrder.push(`${device.id}: command ${id} has a smaller id`)
  }
  return { again, needless }
}

/** How far the times of events and of connections may lie apart, milliseconds. */
const tolerance = 1000

/** Whether the device had a connection to a node that was there, all the time around a moment. */
const wasConnected = ({ connections }: DrillDevice, time: number): boolean => {
  for (let at = time - tolerance; at <= time + tolerance; at += 5) {
    const isConnected = connections.some(({ from, node, to }) =>
      from !== undefined && from <= at && at <= (to ?? Infinity) && !node.wasOut(at)
    )
    if (!isConnected) return false
  }
  return true
}

const judgeStatus = ({ device, status, told }: Account, faults: Faults): void => {
  for (const [i, event] of told.statuses.entries()) {
    const before = told.statuses[i - 1]
    const text = `${device.id}: ${event.status}, version ${event.version}`
    if (before !== undefined && (event.version <= before.version || event.status === before.status)) {
      faults.falseStatus.push(`${text} behind ${before.status}, version ${before.version}`)
    } else if (event.status === "offline" && wasConnected(device, event.time)) {
      faults.falseStatus.push(`${text} while it was connected`)
    }
  }
  const truth = device.current === undefined ? "offline" : "online"
  const last = told.statuses.at(-1)?.status
  if (last !== truth || status !== truth) {
    faults.falseStatus.push(`${device.id} is ${truth}; its last event says ${last}, the API ${status}`)
  }
}

/** Counts the faults of all devices. `sessions`: how many the nodes hold. */
export const count = (accounts: ReadonlyArray<Account>, sessions: number): Counts => {
  const faults: Faults = { lost: [], doubled: [], outOfOrder: [], falseStatus: [], ghosts: [] }
  let [acknowledged, again, needless, connected] = [0, 0, 0, 0]
  for (const account of accounts) {
    const { clients, device } = account
    acknowledged += device.acknowledged.length + clients.reduce((sum, { messageIds }) => sum + messageIds.length, 0)
    judgeReports(account, faults)
    const commands = judgeCommands(account, faults)
    again += commands.again
    needless += commands.needless
    judgeStatus(account, faults)
    const { open } = device
    for (const { node } of open.slice(0, -1)) faults.ghosts.push(`${device.id} has another connection to ${node.name}`)
    connected += open.length > 0 ? 1 : 0
  }
  while (faults.ghosts.length < sessions - connected) {
    faults.ghosts.push(`the nodes hold ${sessions} sessions of ${connected} devices`)
  }
  return { acknowledged, again, needless, faults }
}
