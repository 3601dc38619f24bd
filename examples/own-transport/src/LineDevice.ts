/**
 * The other end: a device that speaks JSON lines, as firmware would. It knows nothing
 * of the cloud but the wire.
 */
import { createHmac } from "node:crypto"
import { connect, type Socket } from "node:net"
import { type FromCloud, linesOf } from "./Lines.ts"

export interface Triple {
  readonly productKey: string
  readonly deviceName: string
  readonly deviceSecret: string
}

export class LineDevice {
  readonly #socket: Socket
  readonly #lines: AsyncGenerator<string>

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#lines = linesOf(socket)
  }

  /** Connects and says who the device is. A line says whether it is let in; what waited for the device may come before it. */
  static open({ deviceName, deviceSecret, productKey }: Triple, port: number): LineDevice {
    const text = `clientIdlinedeviceName${deviceName}productKey${productKey}`
    const device = new LineDevice(connect(port, "127.0.0.1"))
    device.say({ productKey, deviceName, sign: createHmac("sha256", deviceSecret).update(text).digest("hex") })
    return device
  }

  say(document: object): void {
    this.write(`${JSON.stringify(document)}\n`)
  }

  /** Sends any text. */
  write(text: string): void {
    this.#socket.write(text)
  }

  /** Returns the next line of the cloud; undefined: it has ended the connection. */
  async hear(): Promise<FromCloud | undefined> {
    const { value } = await this.#lines.next()
    return value === undefined ? undefined : JSON.parse(value)
  }

  close(): void {
    this.#socket.destroy()
  }
}
