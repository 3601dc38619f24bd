/**
 * One server of the cloud in a drill. It keeps its addresses when it starts again.
 */
import { mkdir } from "node:fs/promises"
import type { Program } from "../Processes.ts"
import { type ReferenceServerOptions, startReferenceServer } from "../ReferenceServer.ts"
import type { CloudAddress } from "../Tenant.ts"

/** A time in which a node was dead or stood still, Unix milliseconds. */
interface Outage {
  readonly from: number
  to: number
}

export class CloudNode {
  readonly name: string
  readonly outages: Array<Outage> = []
  private options: ReferenceServerOptions
  private program: Program<CloudAddress> | undefined
  private known: CloudAddress | undefined

  constructor(name: string, options: ReferenceServerOptions) {
    this.name = name
    this.options = options
  }

  get address(): CloudAddress {
    return this.known!
  }

  get pid(): number {
    return this.program!.pid
  }

  get isUp(): boolean {
    return this.program !== undefined && this.outages.every(({ to }) => to !== Infinity)
  }

  /** Whether it was out at a time, Unix milliseconds. */
  wasOut(time: number): boolean {
    return this.outages.some(({ from, to }) => from <= time && time <= to)
  }

  /** Its next start is that of another built program; undefined: of this checkout. */
  become(program: string | undefined): void {
    const { program: _, ...options } = this.options
    this.options = program === undefined ? options : { ...options, program }
  }

  async start(): Promise<void> {
    await mkdir(this.options.directory, { recursive: true })
    const { env, ...options } = this.options
    const ports = this.known === undefined ? {} : {
      HTTP_PORT: new URL(this.known.http).port,
      MQTT_PORT: new URL(this.known.mqtt).port,
      MQTTS_PORT: new URL(this.known.mqtts).port
    }
    this.program = await startReferenceServer({ ...options, env: { ...env, ...ports } })
    this.known = this.program.said
    this.endOutage()
  }

  /** Ends it, with `kill -9` or as an operator does. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const program = this.program
    if (program === undefined) return
    this.program = undefined
    this.beginOutage()
    await program.end(signal)
  }

  /** It stands still until `thaw`. */
  freeze(): void {
    this.beginOutage()
    process.kill(this.pid, "SIGSTOP")
  }

  thaw(): void {
    process.kill(this.pid, "SIGCONT")
    this.endOutage()
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal)
  }

  /** A gauge or counter of its metrics, summed up over its attributes; 0 if it tells no metrics here, as with workers. */
  async metric(name: string): Promise<number> {
    const response = await fetch(`${this.address.http}/metrics`)
    const text = response.ok ? await response.text() : ""
    return [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, "gm"))]
      .reduce((sum, [, value]) => sum + Number(value), 0)
  }

  private beginOutage(): void {
    this.outages.push({ from: Date.now(), to: Infinity })
  }

  private endOutage(): void {
    const last = this.outages.at(-1)
    if (last?.to === Infinity) last.to = Date.now()
  }
}
