/**
 * A client of the API that commands one device without end: the other side of the ledger.
 */
import { Tenant } from "../Tenant.ts"
import type { CloudNode } from "./CloudNode.ts"
import type { DrillDevice } from "./DrillDevice.ts"
import { ownerKey } from "../ReferenceServer.ts"

/** Commands of one client that the device has not got. */
const window = 12

export class CommandClient {
  /** Commands that the cloud has taken, in the order of its answers. */
  readonly messageIds: Array<number> = []
  readonly device: DrillDevice
  private readonly node: () => CloudNode
  private readonly waiting = new Set<number>()
  private isOver = false
  private running: Promise<void> | undefined

  /** `node` names the node to ask, for each command. */
  constructor(device: DrillDevice, node: () => CloudNode) {
    this.device = device
    this.node = node
  }

  start(pause: number): void {
    this.running = (async () => {
      let k = 0
      while (!this.isOver) {
        for (const id of this.waiting) {
          if (this.device.came.has(id)) this.waiting.delete(id)
        }
        if (this.waiting.size < window) await this.send(++k)
        await new Promise((resolve) => setTimeout(resolve, pause))
      }
    })()
  }

  /** Waits for the answer to the last command. */
  async stop(): Promise<void> {
    this.isOver = true
    await this.running
  }

  private async send(k: number): Promise<void> {
    try {
      const { message_id } = await new Tenant({ ...this.node().address, key: ownerKey }).call<{
        readonly message_id: string
      }>("POST", `/things/${this.device.id}/properties`, { params: { k } })
      this.messageIds.push(Number(message_id))
      this.waiting.add(Number(message_id))
    } catch {
      // It may have been taken or not: nobody promised anything.
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
