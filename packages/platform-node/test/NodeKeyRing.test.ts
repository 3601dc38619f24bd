import { KeyRing } from "@device-cloud/core"
import { NodeKeyRing } from "@device-cloud/platform-node"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Layer, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const newKey = () => randomBytes(32).toString("base64")

const ringOf = (...keys: ReadonlyArray<string>) =>
  Effect.provide(Effect.service(KeyRing), Layer.fresh(NodeKeyRing.layerKeys(Redacted.make(keys.join(",")))))

const ringIn = (file: string) => Effect.provide(Effect.service(KeyRing), Layer.fresh(NodeKeyRing.layerFile(file)))

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-keys-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

it.effect("opens what was sealed, for its place only, and whole only", () =>
  Effect.gen(function*() {
    const ring = yield* ringOf(newKey())
    const { key, sealed } = yield* ring.generate
    const text = key.seal("a secret: é 🔑", "device/1")
    assert.notInclude(Buffer.from(text, "base64url").toString("latin1"), "secret")
    assert.notStrictEqual(key.seal("a secret: é 🔑", "device/1"), text)
    const again = yield* ring.open(sealed)
    assert.strictEqual(again.open(text, "device/1"), "a secret: é 🔑")
    assert.strictEqual(again.open(key.seal("", "x"), "x"), "")
    assert.isUndefined(again.open(text, "device/2"))
    for (let i = 0; i < text.length; i++) {
      const other = text[i] === "A" ? "B" : "A"
      const changed = text.slice(0, i) + other + text.slice(i + 1)
      // The last character has bits that no byte takes.
      if (Buffer.from(changed, "base64url").equals(Buffer.from(text, "base64url"))) continue
      assert.isUndefined(again.open(changed, "device/1"), String(i))
    }
    for (const malformed of ["", "x", text.slice(0, 37), text.slice(0, -2), `${text}AA`]) {
      assert.isUndefined(again.open(malformed, "device/1"))
    }
    assert.isUndefined((yield* ring.generate).key.open(text, "device/1"))
    assert.strictEqual(again.fingerprint("x"), key.fingerprint("x"))
    assert.notStrictEqual((yield* ring.generate).key.fingerprint("x"), key.fingerprint("x"))
  }))

it.effect("a new master key takes over the data keys of the old one", () =>
  Effect.gen(function*() {
    const [old, next] = [newKey(), newKey()]
    const { key, sealed } = yield* (yield* ringOf(old)).generate
    const text = key.seal("secret", "place")
    const both = yield* ringOf(next, old)
    assert.notStrictEqual(yield* both.masterKeyId, sealed.masterKeyId)
    const resealed = yield* both.reseal(sealed)
    assert.strictEqual(resealed.masterKeyId, yield* both.masterKeyId)
    const after = yield* ringOf(next)
    assert.strictEqual((yield* after.open(resealed)).open(text, "place"), "secret")
    const error = yield* Effect.flip(after.open(sealed))
    assert.include(error.message, sealed.masterKeyId)
  }))

it.effect("opens what another process has sealed that made the file after this one had looked", () =>
  Effect.gen(function*() {
    const file = join(yield* directory, "secrets-key")
    const first = yield* ringIn(file)
    const second = yield* ringIn(file)
    const { key, sealed } = yield* first.generate
    const text = key.seal("secret", "place")
    assert.strictEqual((yield* second.open(sealed)).open(text, "place"), "secret")
    assert.strictEqual(yield* second.masterKeyId, sealed.masterKeyId)
  }).pipe(Effect.scoped))

it.effect("refuses keys that are none, and says what it expects", () =>
  Effect.gen(function*() {
    for (const bad of ["", " ", "x", newKey().slice(1), `${newKey()},x`, randomBytes(16).toString("base64")]) {
      assert.include((yield* Effect.flip(ringOf(bad))).message, "32 bytes in base64", bad)
    }
  }))

it.effect("makes a file of its own for its owner alone, when it needs one and not before", () =>
  Effect.gen(function*() {
    const file = join(yield* directory, "deep", "secrets-key")
    const rings = yield* Effect.forEach([1, 2, 3, 4], () => ringIn(file))
    assert.isFalse(existsSync(file))
    // A ring without keys opens nothing, and makes none for it.
    const { sealed: foreign } = yield* (yield* ringOf(newKey())).generate
    assert.include((yield* Effect.flip(rings[0]!.open(foreign))).message, "missing")
    assert.isFalse(existsSync(file))
    // Several processes that start at once agree on one key.
    const made = yield* Effect.forEach(rings, (ring) => ring.generate, { concurrency: "unbounded" })
    assert.strictEqual(new Set(made.map(({ sealed }) => sealed.masterKeyId)).size, 1)
    assert.strictEqual((yield* Effect.promise(() => stat(file))).mode & 0o777, 0o600)
    assert.deepStrictEqual(yield* Effect.promise(() => readdir(join(file, ".."))), ["secrets-key"])
    assert.match(yield* Effect.promise(() => readFile(file, "utf8")), /^[A-Za-z0-9+/]{43}=\n$/)
    const text = made[0]!.key.seal("secret", "place")
    assert.strictEqual((yield* (yield* ringIn(file)).open(made[0]!.sealed)).open(text, "place"), "secret")
  }).pipe(Effect.scoped))

it.effect.each([
  ["keys in plain text", newKey()],
  ["keys of a variable that is not set", Redacted.make(undefined)]
])("%s are refused by name", ([, keys]) =>
  Effect.gen(function*() {
    // @ts-expect-error for those that do not check types
    const cause = yield* Effect.flip(Effect.sandbox(Layer.build(NodeKeyRing.layerKeys(keys))))
    assert.deepInclude(Cause.squash(cause), { name: "TypeError", message: "keys: expected Redacted.make of a text" })
  }))
