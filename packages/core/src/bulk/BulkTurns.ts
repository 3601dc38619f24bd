/**
 * The clock of bulk commands: each second, a node claims turns and asks the
 * devices. It takes a bounded number from each bulk command, so that none holds
 * up another, and few at a time, so that the commands of others pass between them
 * (docs/decisions/0071-bulk-commands.md).
 */
import { Clock, Effect, Layer } from "effect"
import { Commands } from "../command/Commands.ts"
import { CommandStore } from "../command/CommandStore.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { StoreError } from "../kernel/StoreError.ts"
import { BulkCommandStore, bulkOrigin, type BulkOutcome, type BulkTurn } from "./BulkCommandStore.ts"

/** Runs the clock as long as the layer lives. Of several nodes, one takes a turn. */
export const layer: Layer.Layer<never, never, BulkCommandStore | Commands | CommandStore> = Layer.effectDiscard(
  Effect.suspend(() => make)
)

/** Bulk commands that one tick serves, and devices of each. */
const bulks = 10
const perBulk = 250
/**
 * Turns that are taken at the same moment. A command that changes the shadow, too,
 * is a transaction of its own: with more of them, calls of others wait longer.
 */
const concurrency = 4
/** Turns whose outcomes are stored together. */
const sliceSize = 50
/** Milliseconds until a turn without outcome is taken again. */
const again = 60_000

const make = Effect.gen(function*() {
  const store = yield* BulkCommandStore
  const ledger = yield* CommandStore
  const commands = yield* Commands

  /** Asks the device. A turn that is taken again finds the command of the first time by its origin. */
  const ask = ({ bulk: { bulkId, params, projectId, serviceId, ttl }, deviceId }: BulkTurn) => {
    const options = { ttl, origin: bulkOrigin(bulkId) }
    return serviceId === null
      ? commands.setProperties(projectId, deviceId, params, options)
      : commands.callService(projectId, deviceId, serviceId, params, options)
  }

  /** Returns the outcome of a turn; undefined: the store cannot be reached, and the turn is taken again later. */
  const take = (turn: BulkTurn): Effect.Effect<BulkOutcome | undefined> =>
    (turn.cancels === null
      ? Effect.map(ask(turn), ({ messageId }): BulkOutcome => ({ turn, messageId, reason: "" }))
      : Effect.flatMap(Clock.currentTimeMillis, (at) => ledger.cancel(turn.deviceId, turn.cancels!, at)).pipe(
        Effect.as<BulkOutcome>({ turn, messageId: turn.cancels, reason: "" })
      )).pipe(
        Effect.catch((error) => {
          if (!(error instanceof StoreError)) return Effect.succeed({ turn, messageId: null, reason: error.message })
          return error.retryable ? Effect.undefined : Effect.die(error)
        }),
        // A device for which nothing works must not hold up the others.
        Effect.catchDefect((defect) =>
          Effect.logError("A device of a bulk command could not be asked", defect).pipe(
            Effect.as({ turn, messageId: turn.cancels, reason: "internal error" })
          )
        )
      )

  const tick = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const turns = yield* store.claim({ now, again: now + again, bulks, perBulk })
    for (let i = 0; i < turns.length; i += sliceSize) {
      const outcomes = yield* Effect.forEach(turns.slice(i, i + sliceSize), take, { concurrency })
      const settled = outcomes.filter((outcome) => outcome !== undefined)
      if (settled.length > 0) yield* store.settle(settled, yield* Clock.currentTimeMillis)
    }
  })

  yield* tick.pipe(
    Effect.catchCause((cause) => Effect.logWarning("Bulk commands could not be carried on", cause)),
    Periodic.looking
  )
})
