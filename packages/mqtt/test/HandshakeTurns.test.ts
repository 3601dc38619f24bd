import { eventually } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { HandshakeTurns } from "../src/HandshakeTurns.ts"

/** A TLS record of a handshake with this content. */
const hello = (content: string) => Buffer.concat([Buffer.from([22, 3, 1, 0, content.length]), Buffer.from(content)])

/** Connections on which a client has said something, in the order of the words. */
const connected = Effect.fnUntraced(function*(words: ReadonlyArray<Buffer>) {
  const sockets: Array<Socket> = []
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((socket) => sockets.push(socket))
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close())
  )
  for (const [i, word] of words.entries()) {
    yield* Effect.acquireRelease(
      Effect.sync(() => connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {})),
      (client) => Effect.sync(() => client.destroy())
    ).pipe(Effect.tap((client) => Effect.sync(() => client.write(word))))
    yield* eventually(Effect.sync(() => sockets.length), { until: (count) => count === i + 1 })
  }
  return sockets
})

it.live("handshakes begin with whom the cloud knows, then with who came last, and not with who has gone", () =>
  Effect.gen(function*() {
    const names = ["first", "second", "third", "gone", "known"]
    const sockets = yield* connected(names.map(hello))
    const begun: Array<string> = []
    const turns = new HandshakeTurns(10_000, (socket) => begun.push(String(socket.read()).slice(5)))
    for (const [i, socket] of sockets.entries()) turns.add(socket, { isKnown: names[i] === "known", holds: () => {} })
    // They are read in the ticks before this one, and begin later.
    yield* Effect.callback<void>((resume) => {
      let waiting = sockets.length
      for (const socket of sockets) {
        socket.once("readable", () => {
          if (--waiting > 0) return
          sockets[3]!.destroy()
          resume(Effect.void)
        })
      }
    })
    yield* eventually(Effect.sync(() => begun.length), { until: (count) => count === 4 })
    assert.deepStrictEqual(begun, ["known", "third", "second", "first"])
  }).pipe(Effect.scoped))

it.live("handshakes of strangers wait while others come, and those of whom the cloud knows do not", () =>
  Effect.gen(function*() {
    const sockets = yield* connected([hello("stranger"), hello("known"), Buffer.from([22])])
    const [stranger, known, silent] = sockets as [Socket, Socket, Socket]
    const begun: Array<string> = []
    const turns = new HandshakeTurns(10_000, (socket) => begun.push(String(socket.read()).slice(5)))
    const add = (socket: Socket, isKnown: boolean) => turns.add(socket, { isKnown, holds: () => {} })
    add(stranger, false)
    for (let round = 0; round < 20; round++) {
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
      if (round === 10) add(known, true)
      add(silent, false)
    }
    yield* eventually(Effect.sync(() => begun.length), { until: (count) => count === 2 })
    assert.deepStrictEqual(begun, ["known", "stranger"])
  }).pipe(Effect.scoped))

it.live("a handshake does not begin before the hello is whole, and half a hello has an end", () =>
  Effect.gen(function*() {
    const sockets = yield* connected([hello("half").subarray(0, 7)])
    let begun = 0
    let held = 0
    new HandshakeTurns(50, () => begun++).add(sockets[0]!, {
      isKnown: false,
      holds: (bytes) => {
        held = bytes
      }
    })
    yield* eventually(Effect.sync(() => sockets[0]!.destroyed), { until: (destroyed) => destroyed })
    assert.strictEqual(begun, 0)
    assert.strictEqual(held, 7)
  }).pipe(Effect.scoped))
