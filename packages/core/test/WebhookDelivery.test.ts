import { Mac, makeWebhookPace, ProjectId, WebhookClient, WebhookError, WebhookSigning } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { WebhookDelivery } from "../src/scene/execution/WebhookDelivery.ts"
import { WebhookPace } from "../src/scene/execution/WebhookPace.ts"

const projectId = ProjectId.make("project")

/** All names stand for one address, which gets one webhook a second and has one under way. */
const deliveryOver = (send: WebhookClient["Service"]["send"]) =>
  WebhookDelivery.layer.pipe(
    Layer.provide(Layer.mergeAll(
      Layer.succeed(WebhookClient, WebhookClient.of({ refuse: () => undefined, send })),
      Layer.succeed(WebhookPace, makeWebhookPace({ rate: 1, burst: 1, atOnce: 1 })),
      Layer.mock(WebhookSigning, { keys: () => Effect.succeed({ current: "key", createdAt: 0, previous: null }) }),
      Layer.mock(Mac, { sign: () => "00", sha256: (bytes) => bytes, aes128Cbc: (bytes) => bytes })
    ))
  )

const address = ["192.0.2.1:443"]

const sendTo = (host: string, hasWaited = false) =>
  Effect.flatMap(WebhookDelivery, (delivery) =>
    delivery.send(projectId, {
      id: "msg_1",
      url: `https://${host}/`,
      method: "POST",
      body: "{}",
      connectTimeout: null,
      requestTimeout: null,
      hasWaited
    }))

it.effect("a name that is looked up for longer than its request lasts keeps no place at the address", () => {
  const late: Array<() => boolean> = []
  return Effect.gen(function*() {
    const first = yield* sendTo("slow.example")
    assert.strictEqual(first._tag, "Unanswered")
    assert.isFalse(late[0]!())
    yield* TestClock.adjust("2 seconds")
    assert.strictEqual((yield* sendTo("fast.example"))._tag, "Answered")
  }).pipe(Effect.provide(deliveryOver(({ admits, url }) => {
    if (url.includes("slow")) {
      late.push(() => admits(address))
      return Effect.fail(new WebhookError({ reason: "timeout", message: "No connection within 5 seconds" }))
    }
    return admits(address)
      ? Effect.succeed({ status: 204, body: "" })
      : Effect.fail(new WebhookError({ reason: "not-admitted", message: "Not now" }))
  })))
})

it.effect("an address keeps its pace while names are looked up slowly", () =>
  Effect.gen(function*() {
    const slow = yield* Effect.forkChild(sendTo("slow.example"), { startImmediately: true })
    yield* TestClock.adjust("3500 millis")
    assert.strictEqual((yield* sendTo("fast.example"))._tag, "Answered")
    yield* TestClock.adjust("500 millis")
    assert.strictEqual((yield* Fiber.join(slow))._tag, "PutOff")
    assert.strictEqual((yield* sendTo("other.example", true))._tag, "PutOff")
  }).pipe(Effect.provide(deliveryOver(({ admits, url }) =>
    Effect.gen(function*() {
      if (url.includes("slow")) yield* Effect.sleep("4 seconds")
      if (admits(address)) return { status: 204, body: "" }
      return yield* new WebhookError({ reason: "not-admitted", message: "Not now" })
    })
  ))))
