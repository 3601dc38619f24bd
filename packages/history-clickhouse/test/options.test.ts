import * as HistoryClickHouse from "@device-cloud/history-clickhouse"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Layer, Redacted } from "effect"

it.effect.each([
  ["an address in plain text", "http://cloud:secret@127.0.0.1:8123/cloud"],
  ["an address of a variable that is not set", Redacted.make(undefined)],
  ["what is no address", Redacted.make("cloud:secret@:8123")]
])("%s is refused by name", ([, url]) =>
  Effect.gen(function*() {
    // @ts-expect-error for those that do not check types
    const cause = yield* Effect.flip(Effect.sandbox(Layer.build(HistoryClickHouse.layer({ url }))))
    assert.deepInclude(Cause.squash(cause), {
      name: "TypeError",
      message: "url: expected Redacted.make of a URL such as http://127.0.0.1:8123/database"
    })
  }))
