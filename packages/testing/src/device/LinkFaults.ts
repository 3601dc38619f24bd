/**
 * What goes wrong between a device and the cloud, by chance and in the same way
 * whenever the seed is the same.
 */
import { type Duration, Effect, Latch } from "effect"
import { probability } from "../Probability.ts"
import { SeededRandom } from "../simulation/SeededRandom.ts"
import type { DeviceLink, Incoming, OpenLink } from "./DeviceLink.ts"

/** Faults of a device and its connection. A probability is a number from 0, never, to 1, always. */
export interface DeviceFaults {
  /** Decides which messages are hit: the n-th message of a device has the same fate in each run. */
  readonly seed: number | string
  /** Probability that the device does not confirm a message: the cloud sends it again at the next connection. */
  readonly loseAcknowledgements?: number
  /** Probability that a reply does not reach the device: it sends the message again after ten seconds. */
  readonly loseReplies?: number
  /** Probability that a message, of either side, arrives twice. */
  readonly duplicate?: number
  /** Probability that a message, of either side, is overtaken by the next one, or comes a second late. */
  readonly reorder?: number
  /** How far the device's clock is ahead of the true time, in milliseconds; negative: behind. Its reports carry its time. */
  readonly clock?: number
  /** How long the device takes to read each message. */
  readonly slowReading?: Duration.Input
}

/** After this time a device sends a message again whose reply has not come. */
const resendAfter = "10 seconds"

/** After this time a message that waits to be overtaken goes on its way. */
const overtakenWithin = "1 second"

/** Returns a link with faults. */
export const withFaults = (faults: DeviceFaults) => <E, R>(open: OpenLink<E, R>): OpenLink<E, R> => (receive) =>
  Effect.gen(function*() {
    const { seed, slowReading = 0 } = faults
    const chanceOf = (fault: "duplicate" | "loseAcknowledgements" | "loseReplies" | "reorder") =>
      probability(`faults.${fault}`, faults[fault] ?? 0)
    const [duplicate, reorder] = [chanceOf("duplicate"), chanceOf("reorder")]
    const [loseAcknowledgements, loseReplies] = [chanceOf("loseAcknowledgements"), chanceOf("loseReplies")]
    const scope = yield* Effect.scope
    const up = new SeededRandom(seed, "up")
    const down = new SeededRandom(seed, "down")

    let held: Incoming | undefined
    const release = Effect.suspend(() => {
      const late = held
      held = undefined
      return late === undefined ? Effect.void : receive(late)
    })

    const arrive = Effect.fnUntraced(function*({ acknowledge, ...incoming }: Incoming) {
      yield* Effect.sleep(slowReading)
      if (!down.chance(loseAcknowledgements)) acknowledge()
      const arrived = { ...incoming, acknowledge: () => {} }
      if (held === undefined && down.chance(reorder)) {
        held = arrived
        return yield* Effect.forkIn(Effect.delay(release, overtakenWithin), scope)
      }
      yield* receive(arrived)
      if (down.chance(duplicate)) yield* receive(arrived)
      yield* release
    }, Effect.asVoid)

    const link = yield* open(arrive)
    const overtaken = yield* Latch.make()

    const send: DeviceLink["send"] = Effect.fnUntraced(function*(message) {
      if (up.chance(reorder)) yield* Effect.race(overtaken.await, Effect.sleep(overtakenWithin))
      else yield* overtaken.release
      let reply = yield* link.send(message)
      while (up.chance(loseReplies)) {
        yield* Effect.sleep(resendAfter)
        reply = yield* link.send(message)
      }
      if (up.chance(duplicate)) yield* link.send(message)
      return reply
    })

    return { ...link, send }
  })
