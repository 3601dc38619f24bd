import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { maxPayloadBytes, tracedText, withoutSecrets } from "../src/trace/TracedText.ts"

describe("what a trace shows of a payload", () => {
  it("is the payload as it came, if it has no secret", () => {
    const payload = `{ "params": {"Temperature": 1.0, "signal": -70, "clientToken":"t1"} }`
    assert.deepStrictEqual(tracedText(payload), { text: payload, encoding: "utf8", bytes: payload.length, cut: false })
  })

  it("has a mask in the place of secrets and signatures", () => {
    const kept = ["productKey", "deviceName", "tokens", "design"]
    const masked = [
      "sign",
      "signature",
      "deviceSecret",
      "device_secret",
      "password",
      "token",
      "deviceToken",
      "networkKey"
    ]
    for (const name of masked) {
      const shown = withoutSecrets(JSON.stringify({ params: [{ [name]: "hush" }] }))
      assert.notInclude(shown, "hush", name)
      assert.include(shown, "***", name)
      assert.notInclude(withoutSecrets(`{"${name}":"hush", broken`), "hush", name)
    }
    for (const name of kept) assert.include(withoutSecrets(JSON.stringify({ [name]: "seen" })), "seen", name)
    assert.notInclude(withoutSecrets(`{"\\u0073ign":"hush"}`), "hush")
    assert.notInclude(withoutSecrets(`{"url":"https://host/path?x=1&X-Amz-Signature=hush"}`), "hush")
    const objectId = "0123456789abcdef0123456789abcdef"
    assert.notInclude(withoutSecrets(`{"url":"https://host/objects/${objectId}/a.bin"}`), objectId)
  })

  it("has a mask in the place of what stands in a text, and of a member that another of its name replaces", () => {
    for (
      const payload of [
        JSON.stringify({ data: JSON.stringify({ deviceSecret: "hush" }) }),
        JSON.stringify({ data: JSON.stringify([JSON.stringify({ sign: "hush" })]) }),
        JSON.stringify(JSON.stringify({ deviceSecret: "hush" })),
        JSON.stringify({ log: "signed in with password=hush" }),
        "key_sign=hush",
        `{"deviceSecret":"hush","deviceSecret":""}`,
        `{"token" : "hush", "token":null}`,
        `{"a":{"password":"hush"},"a":1}`
      ]
    ) {
      assert.notInclude(withoutSecrets(payload), "hush", payload)
    }
    const kept = JSON.stringify({ data: "{ \"design\": 1.0 }", log: "signal -70", list: "[1, 2]" })
    assert.strictEqual(withoutSecrets(kept), kept)
  })

  it("is hex for bytes that are no text", () => {
    const bytes = Uint8Array.from([0xff, 0x00, 0x10])
    assert.deepStrictEqual(tracedText(bytes), { text: "ff0010", encoding: "hex", bytes: 3, cut: false })
    assert.deepStrictEqual(tracedText(new Uint8Array(8), 4), { text: "0000", encoding: "hex", bytes: 8, cut: true })
  })

  const max = Schema.Int.check(Schema.isBetween({ minimum: 8, maximum: 5000 }))
  it.effect.prop(
    "is never longer than it may be, and says when more follows",
    [Schema.String, max],
    ([text, max]) =>
      Effect.sync(() => {
        const shown = tracedText(JSON.stringify({ text: text.repeat(50) }), max)
        assert.isAtMost(new TextEncoder().encode(shown.text).length, max)
        if (!shown.cut) assert.strictEqual(JSON.parse(shown.text).text, text.repeat(50))
      })
  )

  // A search that begins anew at each letter takes minutes.
  it("is there soon, whatever a long text says", () => {
    const repeated = ["x", "x=", "&key", "?sign", "\"", "\\\"", "sign ", "sign= ", "{\"", "[", "[x]", "a\\"]
    for (const part of repeated) {
      const text = part.repeat(262_144 / part.length)
      for (const payload of [text, `&${text}`, JSON.stringify({ text }), JSON.stringify(text.match(/.{1,4}/g))]) {
        assert.isAtLeast(tracedText(payload).bytes, text.length)
      }
    }
  })

  it("takes whatever comes", () => {
    assert.isTrue(tracedText("x".repeat(maxPayloadBytes + 1)).cut)
    assert.isFalse(tracedText("x".repeat(maxPayloadBytes)).cut)
    assert.isTrue(tracedText("[".repeat(200_000)).cut)
    assert.isTrue(tracedText(`${"[".repeat(50_000)}${"]".repeat(50_000)}`).cut)
  })
})
