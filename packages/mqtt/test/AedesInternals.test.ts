import { assert, it } from "@effect/vitest"
import { Aedes, type Client } from "aedes"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Duplex } from "node:stream"
import { pinnedVersion, usedMembers } from "../src/protocol/AedesInternals.ts"

type Members = Record<string, unknown>

const shapeOf = (value: unknown): string => value === null ? "null" : typeof value

/** Each member of `expected`, with the shape that it has in `actual`. */
const shapesIn = (actual: unknown, expected: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.keys(expected).map((name) => [name, shapeOf((actual as Members)[name])]))

const openStream = () => new Duplex({ read() {}, write: (_, __, written) => written() })

const broker = Effect.acquireRelease(
  Effect.promise(() => Aedes.createBroker()),
  (broker) => Effect.callback<void>((resume) => broker.close(() => resume(Effect.void)))
)

/** A new broker and a new client of it that has sent nothing. */
const brokerAndClient = Effect.gen(function*() {
  const aedes = yield* broker
  const stream = openStream()
  const client = aedes.handle(stream)
  return { aedes, client, stream, members: client as unknown as Members }
})

/** Waits until aedes asks for the authentication of a CONNECT. */
const authenticating = Effect.gen(function*() {
  const { aedes, stream } = yield* brokerAndClient
  const asked = Effect.callback<Client>((resume) => {
    aedes.authenticate = (client) => resume(Effect.succeed(client))
  })
  // CONNECT, MQTT 3.1.1, clean session, client id "a".
  stream.push(Buffer.from([0x10, 13, 0, 4, 77, 81, 84, 84, 4, 2, 0, 0, 0, 1, 97]))
  return yield* asked
})

it("the installed version of aedes is the one whose members we use, and package.json pins it", () => {
  const directory = dirname(createRequire(import.meta.url).resolve("aedes"))
  const installed = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"))
  const own = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  assert.strictEqual(installed.version, pinnedVersion)
  assert.strictEqual(own.dependencies.aedes, pinnedVersion)
})

it.effect("the private members of a broker and a client have the shapes that we expect", () =>
  Effect.gen(function*() {
    const { aedes, members } = yield* brokerAndClient
    assert.deepStrictEqual(shapesIn(aedes, usedMembers.broker), usedMembers.broker)
    assert.deepStrictEqual(shapesIn(members, usedMembers.client), usedMembers.client)
    assert.deepStrictEqual(shapesIn(members["_parser"], usedMembers.parser), usedMembers.parser)
  }))

it.effect("a client is paused while it is authenticated", () =>
  Effect.gen(function*() {
    const client = yield* authenticating
    assert.deepStrictEqual(shapesIn(client, usedMembers.pausedClient), usedMembers.pausedClient)
    assert.isTrue((client as unknown as Members)["_paused"])
  }))

it.effect("aedes reads through the listener that we replace, and handles packets with the one that we keep", () =>
  Effect.gen(function*() {
    const { members, stream } = yield* brokerAndClient
    const parser = members["_parser"] as Duplex
    assert.include(stream.listeners("readable"), members["_nextBatch"])
    assert.lengthOf(parser.listeners("packet"), 1)
  }))

it.effect("the parser returns how many bytes it keeps of an incomplete packet, and counts its state from 0", () =>
  Effect.gen(function*() {
    const { members } = yield* brokerAndClient
    const parser = members["_parser"] as { parse: (bytes: Buffer) => number; _stateCounter: number }
    assert.strictEqual(parser._stateCounter, 0)
    assert.strictEqual(parser.parse(Buffer.from([0x10, 13, 0, 4, 77])), 3)
    assert.notStrictEqual(parser._stateCounter, 0)
  }))

it("no other file names a private member", () => {
  const root = new URL("../src", import.meta.url).pathname
  const privateNames = Object.values(usedMembers).flatMap(Object.keys).filter((name) => name.startsWith("_"))
  const offenders = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith("AedesInternals.ts"))
    .filter((file) => {
      const text = readFileSync(join(root, file), "utf8")
      return privateNames.some((name) => text.includes(`.${name}`)) || text.includes(".persistence")
    })
  assert.deepStrictEqual(offenders, [])
})
