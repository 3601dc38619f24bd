import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as DeliveryMachine from "../src/command/DeliveryMachine.ts"

/** What happens around one session: commands are stored, and what is told of them, read, and delivered. */
const Happening = Schema.Literals([
  "stored here",
  "stored elsewhere",
  "hears the first notice",
  "hears the last notice",
  "loses a notice",
  "doubles a notice",
  "hears an id alone",
  "is swept",
  "begins to read",
  "delivers of what it read",
  "ends to read",
  "fails to read",
  "has delivered",
  "blocks",
  "unblocks"
])

/** A session, a store that is a list, and a bus that may do anything to notices. */
class Model {
  readonly store: Array<number> = []
  readonly delivered: Array<number> = []
  #notices: Array<DeliveryMachine.StoredCommand> = []
  #delivery = DeliveryMachine.starting
  #isBlocked = false
  /** The command that is being handed to the connection. */
  #handing: number | undefined
  /** Whether somebody reads, and what was found and not delivered yet. */
  #isReading = false
  #found: Array<number> | undefined

  constructor(waiting: number, isAwaited: boolean) {
    for (let i = 0; i < waiting; i++) this.#put()
    this.#follow(DeliveryMachine.attached(this.#delivery, isAwaited, this.#last))
    if (!isAwaited) this.delivered.push(...this.store)
  }

  get #last(): number {
    return this.store.at(-1) ?? 0
  }

  #put(): DeliveryMachine.StoredCommand {
    const previous = this.#last
    // Other devices take ids, too.
    this.store.push(previous + 1 + (previous % 3))
    return { messageId: this.#last, previous }
  }

  #follow([delivery, next]: readonly [DeliveryMachine.Delivery, DeliveryMachine.Next], messageId?: number) {
    this.#delivery = delivery
    if (next === "deliver") {
      assert.isUndefined(this.#handing, "two commands are handed over at once")
      assert.isFalse(this.#isReading, "a command is handed over while the store is read")
      this.#handing = messageId!
    }
    if (next === "read") {
      assert.isFalse(this.#isReading, "two readers at once")
      assert.isUndefined(this.#handing, "the store is read while a command is handed over")
      this.#isReading = true
    }
  }

  #hear(notice: DeliveryMachine.StoredCommand | undefined) {
    if (notice === undefined) return
    this.#follow(DeliveryMachine.stored(this.#delivery, notice, this.#isBlocked), notice.messageId)
  }

  happen(happening: typeof Happening.Type) {
    switch (happening) {
      case "stored here":
        return this.#hear(this.#put())
      case "stored elsewhere":
        return void this.#notices.push(this.#put())
      case "hears the first notice":
        return this.#hear(this.#notices.shift())
      case "hears the last notice":
        return this.#hear(this.#notices.pop())
      case "loses a notice":
        return void this.#notices.shift()
      case "doubles a notice":
        return void this.#notices.push(...this.#notices.slice(0, 1))
      case "hears an id alone": {
        const notice = this.#notices.shift()
        if (notice === undefined) return
        return this.#follow(DeliveryMachine.noticed(this.#delivery, notice.messageId))
      }
      case "is swept":
        return this.#follow(DeliveryMachine.noticed(this.#delivery, this.#last))
      case "begins to read":
        if (!this.#isReading || this.#found !== undefined) return
        this.#delivery = DeliveryMachine.beginRead(this.#delivery)
        this.#found = this.store.filter((messageId) => messageId > this.#delivery.lastKnown)
        return
      case "delivers of what it read": {
        const messageId = this.#found?.shift()
        if (messageId === undefined) return
        this.delivered.push(messageId)
        this.#delivery = DeliveryMachine.known(this.#delivery, messageId)
        return
      }
      case "ends to read":
        if (this.#found?.length !== 0) return
        this.#found = undefined
        this.#isReading = false
        return this.#follow(DeliveryMachine.readToEnd(this.#delivery))
      case "fails to read":
        if (!this.#isReading) return
        this.#found = undefined
        this.#isReading = false
        this.#delivery = DeliveryMachine.readFailed(this.#delivery)
        return
      case "has delivered": {
        const messageId = this.#handing
        if (messageId === undefined) return
        this.#handing = undefined
        this.delivered.push(messageId)
        return this.#follow(DeliveryMachine.delivered(this.#delivery, messageId))
      }
      case "blocks":
      case "unblocks":
        this.#isBlocked = happening === "blocks"
    }
  }

  /** One sweep, and what follows from it. */
  end() {
    this.happen("has delivered")
    this.happen("is swept")
    while (this.#isReading) {
      this.happen("begins to read")
      this.happen("delivers of what it read")
      this.happen("ends to read")
    }
  }
}

it.effect.prop(
  "no command is delivered twice or before an earlier one, and none stays behind a sweep, whatever becomes of notices",
  [Schema.Literals([0, 1, 3]), Schema.Boolean, Schema.Array(Happening)],
  ([waiting, isAwaited, happenings]) =>
    Effect.sync(() => {
      const model = new Model(waiting, isAwaited)
      for (const happening of happenings) {
        model.happen(happening)
        assert.deepStrictEqual(model.delivered, model.store.slice(0, model.delivered.length))
      }
      model.end()
      assert.deepStrictEqual(model.delivered, model.store)
    }),
  { arbitrary: { runs: 2000 } }
)

const open = DeliveryMachine.attached(DeliveryMachine.starting, false, 7)[0]

it("a command that comes while the device is being attached is read from the store", () => {
  const [waiting, nothing] = DeliveryMachine.stored(DeliveryMachine.starting, { messageId: 7, previous: 0 }, false)
  assert.strictEqual(nothing, "nothing")
  assert.strictEqual(DeliveryMachine.attached(waiting, false, 0)[1], "read")
})

it("the next command goes to the device at once; one that others have overtaken makes a look at the store necessary", () => {
  const next = (messageId: number, previous: number | undefined) =>
    DeliveryMachine.stored(open, { messageId, previous }, false)[1]
  assert.strictEqual(next(9, 7), "deliver")
  assert.strictEqual(next(9, 3), "deliver")
  assert.strictEqual(next(9, 8), "read")
  assert.strictEqual(next(9, undefined), "read")
  assert.strictEqual(next(7, 3), "nothing")
})
