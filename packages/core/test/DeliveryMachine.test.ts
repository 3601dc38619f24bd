import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as DeliveryMachine from "../src/command/DeliveryMachine.ts"

/** What happens around one connection: a command is stored here or elsewhere, or the store is read. */
const Happening = Schema.Literals(["stored", "storedElsewhere", "noticed", "read", "blocked", "unblocked"])

/** Runs a history against a store that is a list, with one reader at a time. */
const run = (isAwaited: boolean, happenings: ReadonlyArray<typeof Happening.Type>) => {
  const store: Array<number> = []
  const delivered: Array<number> = []
  let isBlocked = false
  let isReading = false
  let [delivery, next] = DeliveryMachine.attached(DeliveryMachine.starting, isAwaited)
  const follow = (messageId?: number) => {
    if (next === "deliver") {
      delivered.push(messageId!)
      delivery = DeliveryMachine.delivered(delivery, messageId!)
    }
    if (next === "read") {
      assert.isFalse(isReading, "two readers at once")
      isReading = true
    }
    next = "nothing"
  }
  /** One look of the reader at the store. */
  const read = (): boolean => {
    if (!isReading) return false
    delivery = DeliveryMachine.beginRead(delivery)
    const found = store.filter((messageId) => messageId > delivery.lastDelivered)
    for (const messageId of found) {
      delivered.push(messageId)
      delivery = DeliveryMachine.delivered(delivery, messageId)
    }
    if (found.length > 0) return true
    ;[delivery, next] = DeliveryMachine.readToEnd(delivery)
    isReading = next === "read"
    next = "nothing"
    return isReading
  }
  follow()
  for (const happening of happenings) {
    switch (happening) {
      case "stored":
        store.push(store.length + 1)
        ;[delivery, next] = DeliveryMachine.stored(delivery, store.length, isBlocked)
        follow(store.length)
        break
      case "storedElsewhere":
        store.push(store.length + 1)
        break
      case "noticed":
        ;[delivery, next] = DeliveryMachine.noticed(delivery)
        follow()
        break
      case "read":
        read()
        break
      case "blocked":
      case "unblocked":
        isBlocked = happening === "blocked"
    }
  }
  ;[delivery, next] = DeliveryMachine.noticed(delivery)
  follow()
  while (read());
  return { store, delivered }
}

it.effect.prop(
  "no command is delivered twice, each in its order, and none stays behind once the store was read",
  [Schema.Boolean, Schema.Array(Happening)],
  ([isAwaited, happenings]) =>
    Effect.sync(() => {
      // A command of another node is seen before a later one of this node only if the store is read between them.
      const ordered = happenings.flatMap((happening) =>
        happening === "storedElsewhere" ? [happening, "noticed", "read", "read"] as const : [happening]
      )
      const { delivered, store } = run(isAwaited, ordered)
      assert.deepStrictEqual(delivered, store)
    })
)

it("a command that comes while the device is being attached is read from the store", () => {
  const [waiting, nothing] = DeliveryMachine.stored(DeliveryMachine.starting, 7, false)
  assert.strictEqual(nothing, "nothing")
  assert.strictEqual(DeliveryMachine.attached(waiting, false)[1], "read")
})

it("a command that was read from the store is not delivered once more", () => {
  const open = DeliveryMachine.attached(DeliveryMachine.starting, false)[0]
  assert.strictEqual(DeliveryMachine.stored(DeliveryMachine.delivered(open, 7), 7, false)[1], "nothing")
})
