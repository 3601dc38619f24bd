/**
 * The current connection of each device that has one, with the nodes that hold some:
 * all nodes ask for those twice in each heartbeat.
 */
import type { DeviceId } from "@device-cloud/core"

interface Connection {
  readonly connectionId: string
  readonly nodeId: string
}

export class ConnectionTable {
  readonly #connections = new Map<DeviceId, Connection>()
  /** How many connections each node holds that holds some. */
  readonly #held = new Map<string, number>()

  has(deviceId: DeviceId): boolean {
    return this.#connections.has(deviceId)
  }

  get(deviceId: DeviceId): Connection | undefined {
    return this.#connections.get(deviceId)
  }

  /** The devices that are connected. */
  keys(): Iterable<DeviceId> {
    return this.#connections.keys()
  }

  /** The nodes that hold connections. */
  nodeIds(): Iterable<string> {
    return this.#held.keys()
  }

  /** Whether the node holds connections. */
  isHolder(nodeId: string): boolean {
    return this.#held.has(nodeId)
  }

  set(deviceId: DeviceId, connection: Connection): void {
    this.delete(deviceId)
    this.#connections.set(deviceId, connection)
    this.#held.set(connection.nodeId, (this.#held.get(connection.nodeId) ?? 0) + 1)
  }

  delete(deviceId: DeviceId): void {
    const connection = this.#connections.get(deviceId)
    if (connection === undefined) return
    this.#connections.delete(deviceId)
    const left = this.#held.get(connection.nodeId)! - 1
    if (left === 0) this.#held.delete(connection.nodeId)
    else this.#held.set(connection.nodeId, left)
  }
}
