/**
 * The connection of a device to the broker, as the cloud uses it: what the cloud
 * sends leaves in order, one message after the other, each once the broker has it.
 */
import { bytesOf, type Downlink, downlinkOf } from "@device-cloud/alink"
import {
  type DeviceConnection,
  type DeviceIdentity,
  type DisconnectReason,
  disconnectSentences,
  type DownlinkMessage,
  tracedText,
  type TraceRecorder
} from "@device-cloud/core"
import { Clock, Effect, Schedule } from "effect"
import type { BrokerConnection, BrokerLink } from "./BrokerLink.ts"
import { transport } from "./DeviceMessages.ts"

/** Messages that wait for the broker; more wait in the store. */
const maxWaiting = 64
/** The software of a device sets itself up for so long after the CONNACK, milliseconds. */
const quietMillis = 1000
/** How long the broker may take for the last messages of a connection. */
const goodbyeTime = "500 millis"
/** A message that nobody hears is published again so often, and so far apart; then it stays in the store. */
const unheard = { times: 5, pause: "2 seconds" } as const

interface Waiting extends Downlink {
  readonly acknowledged: (() => void) | undefined
}

export class CarriedConnection implements DeviceConnection {
  readonly device: DeviceIdentity
  readonly ip: string
  readonly transport = transport
  readonly #recorder: TraceRecorder["Service"]
  readonly #since: number
  readonly #link: BrokerLink["Service"]
  readonly #run: (effect: Effect.Effect<void>) => void
  readonly #onClose: (reason: DisconnectReason) => Effect.Effect<void>
  readonly #waiting: Array<Waiting> = []
  /** Who waits for room. */
  #onRoom: Array<() => void> = []
  #isSending = false
  #isClosed = false
  #endReason = "the device has disconnected from the broker"

  constructor(
    device: DeviceIdentity,
    { ip, since }: BrokerConnection,
    { link, onClose, recorder, run }: {
      readonly recorder: TraceRecorder["Service"]
      readonly link: BrokerLink["Service"]
      readonly run: (effect: Effect.Effect<void>) => void
      readonly onClose: (reason: DisconnectReason) => Effect.Effect<void>
    }
  ) {
    this.device = device
    this.ip = ip
    this.#since = since
    this.#link = link
    this.#recorder = recorder
    this.#run = run
    this.#onClose = onClose
  }

  /** `acknowledged` is called when the broker has the message for the device; what the device says comes as a reply. */
  deliver(message: DownlinkMessage, acknowledged?: () => void): Effect.Effect<void> {
    return Effect.sync(() => {
      if (this.#isClosed) return
      const receiver = message.subDevice ?? this.device
      const downlink = downlinkOf(message, receiver)
      this.#waiting.push({ ...downlink, acknowledged })
      if (this.#recorder.isTraced(receiver.deviceId)) {
        const { payload, topic } = downlink
        const text = tracedText(bytesOf(payload))
        this.#recorder.note(receiver.deviceId, { kind: "downlink", transport, topic, payload: text })
      }
      if (this.#isSending) return
      this.#isSending = true
      this.#run(this.#send())
    })
  }

  backlog(): Effect.Effect<void> | undefined {
    if (this.#isClosed || this.#waiting.length < maxWaiting) return undefined
    return Effect.callback<void>((resume) => void this.#onRoom.push(() => resume(Effect.void)))
  }

  /** Ends the connection for the cloud. The device may get what was sent before, unless another connection took its place. */
  close(reason: DisconnectReason): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#isClosed) return Effect.void
      this.#endReason = disconnectSentences[reason]
      const sent = reason === "replaced" ? Effect.void : this.#sent
      return Effect.andThen(
        sent,
        Effect.suspend(() => {
          this.end()
          return this.#onClose(reason)
        })
      )
    })
  }

  /** Waits until nothing waits for the broker, but not for long. */
  get #sent(): Effect.Effect<void> {
    return Effect.sync(() => this.#waiting.length).pipe(
      Effect.repeat({ while: (waiting) => waiting > 0, schedule: Schedule.spaced("10 millis") }),
      Effect.timeoutOption(goodbyeTime),
      Effect.asVoid
    )
  }

  endReason(): string {
    return this.#endReason
  }

  /** Sends nothing more. */
  end(): void {
    this.#isClosed = true
    this.#waiting.length = 0
    this.#makeRoom()
  }

  #makeRoom(): void {
    const onRoom = this.#onRoom
    this.#onRoom = []
    for (const go of onRoom) go()
  }

  #send(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const age = (yield* Clock.currentTimeMillis) - this.#since
      if (age >= 0 && age < quietMillis) yield* Effect.sleep(quietMillis - age)
      for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
        const isHeard = yield* this.#publish(next)
        if (this.#isClosed) break
        if (isHeard) next.acknowledged?.()
        this.#waiting.shift()
        if (this.#waiting.length < maxWaiting) this.#makeRoom()
      }
      this.#isSending = false
    })
  }

  /** Publishes until somebody hears it, several times at most. */
  #publish({ callTopics = [], payload, topic }: Downlink): Effect.Effect<boolean> {
    const bytes = bytesOf(payload)
    const publish = (topic: string) =>
      this.#link.publish(topic, bytes).pipe(
        Effect.retry({ while: () => !this.#isClosed, schedule: Schedule.spaced("1 second") }),
        Effect.orElseSucceed(() => false)
      )
    return Effect.gen({ self: this }, function*() {
      for (let time = 0; time <= unheard.times && !this.#isClosed; time++) {
        if (time > 0) yield* Effect.sleep(unheard.pause)
        for (const each of [...callTopics, topic]) if (yield* publish(each)) return true
      }
      return false
    })
  }
}
