import { Turns } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { generate } from "mqtt-packet"
import { Duplex } from "node:stream"
import { DeviceBroker } from "../src/protocol/DeviceBroker.ts"
import { KeptSessions } from "../src/protocol/KeptSessions.ts"
import { type PacketReading, readPackets } from "../src/protocol/PacketReading.ts"

it.effect("packets keep their order if the handling of one wants to read on", () =>
  Effect.gen(function*() {
    let reading: PacketReading | undefined
    const read: Array<string> = []
    const connected = yield* Deferred.make<void>()
    const whole = yield* Deferred.make<void, Error>()
    const broker = new DeviceBroker({
      sessions: new KeptSessions({ expiry: 1000, bytes: 10_000 }, () =>
        0, () => ({ projectId: "project", session: { epoch: 1 } })),
      preConnect: (_, __, done) =>
        done(null, true),
      authenticate: (_, __, ___, done) =>
        done(null, true),
      consume: (_, { payload }, done) => {
        read.push(payload.toString().trimEnd())
        reading?.read()
        done()
        if (read.length === 100) Deferred.doneUnsafe(whole, Effect.void)
      },
      admits: () => true
    })
    yield* Effect.promise(() => broker.listen())
    yield* Effect.addFinalizer(() => Effect.callback<void>((resume) => broker.close(() => resume(Effect.void))))
    const stream = new Duplex({
      read: () => {},
      write: (_, __, done) => {
        Deferred.doneUnsafe(connected, Effect.void)
        done()
      }
    })
    const client = broker.handle(stream)
    client.on("error", (error) => Deferred.doneUnsafe(whole, Effect.fail(error)))
    reading = readPackets(client, stream, {
      maxPacketBytes: 10_000,
      maxArrivalBytes: 10_000,
      onArriving: () => {},
      mayRead: () => true,
      maxHandling: 1000,
      turns: new Turns({ now: () => 0, afterOthers: setImmediate }),
      owner: () => ["", ""],
      onDisconnect: () => {},
      onAcknowledge: () => {}
    })
    stream.push(generate({ cmd: "connect", protocolId: "MQTT", protocolVersion: 4, clientId: "device", clean: true }))
    yield* Deferred.await(connected)
    const names = Array.from({ length: 100 }, (_, i) => `packet ${i}`)
    // More than is read at a time.
    stream.push(Buffer.concat(
      names.map((name) =>
        generate({ cmd: "publish", topic: "topic", payload: name.padEnd(300), qos: 0, dup: false, retain: false })
      )
    ))
    yield* Deferred.await(whole)
    assert.deepStrictEqual(read, names)
  }))
