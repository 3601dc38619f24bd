import { printable } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

it("text from outside is escaped and cut before it stands in a line of the log", () => {
  assert.strictEqual(printable("lamp \u00e9 \u{1f600}"), "lamp \u00e9 \u{1f600}")
  assert.strictEqual(
    printable("a\n[12:00] ERROR\r\u001b[31m\u0000\u2028\u202e\ud800"),
    "a\\u{a}[12:00] ERROR\\u{d}\\u{1b}[31m\\u{0}\\u{2028}\\u{202e}\\u{d800}"
  )
  assert.strictEqual(printable("x".repeat(1000)), `${"x".repeat(256)}…`)
})

it.effect.prop("no text gets more than one line", [Schema.String], ([text]) =>
  Effect.sync(() => {
    assert.notMatch(printable(text), /[\p{Cc}\u2028\u2029]/u)
  }))
