import { Commands, defaultProjectId, type Device, DeviceSessions } from "@device-cloud/core"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { connect as connectTcp, createServer } from "node:net"
import { share, storages } from "../../../vitest.storages.ts"
import { Dice } from "./Dice.ts"
import { conversation, greeting, hasFirstPacket } from "./HostileInput.ts"

const { connectPacket, encode, payloadOf, post, publish } = RawMqttSocket
const { topicOf } = MqttDevice

/** The same seed sends the same bytes. */
const seed = 20_261_121

/** Connections of each kind, on each storage. */
const cases = 1200 / share
/** Connections at a time. */
const concurrency = 24
/** After so many connections the control device talks. */
const casesBetween = 60
/** Milliseconds; for slow machines. */
const timeout = 120_000

/** Whether this machine has addresses of its own beside 127.0.0.1, so that each connection can come from another. */
const otherAddresses = await new Promise<boolean>((resolve) => {
  const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const socket = connectTcp({ port, host: "127.0.0.1", localAddress: "127.77.77.77" })
    const answer = (found: boolean) => () => {
      socket.destroy()
      server.close()
      resolve(found)
    }
    socket.once("connect", answer(true)).once("error", answer(false))
  })
})

/** A loopback address that nobody else uses, other than 127.0.0.1. */
const addressOf = (n: number): string => `127.${1 + (n >> 16)}.${(n >> 8) & 0xff}.${n & 0xff}`

/** JSON of more levels than a recursive function can follow. */
const nested = "[".repeat(50_000) + "]".repeat(50_000)

/** An object that cannot be made a number, nor text. */
const noPrimitive = `{"toString":1,"valueOf":1}`

const many = Array.from({ length: 120_000 }, () => 1).join()

const answerTopic = "/sys/{own}/thing/service/a_reply"

const createProduct = (withModel: boolean) => withModel ? Fixtures.createProductWithModel() : Fixtures.createProduct()

/**
 * One connection: writes what it has, perhaps the rest after the server's first
 * answer, and then ends its side. Answers when the server has ended its own.
 */
const converse = (options: {
  readonly port: number
  readonly localAddress: string | undefined
  /** What is sent at once. */
  readonly first: Buffer
  /** Whether the rest waits for an answer to that. */
  readonly awaitsAnswer: boolean
  readonly more: ReadonlyArray<Buffer>
}) =>
  Effect.callback<void>((resume) => {
    const { awaitsAnswer, first, localAddress, more, port } = options
    const socket = connectTcp({ port, host: "127.0.0.1", noDelay: true, ...localAddress && { localAddress } })
    const finish = () => {
      for (const piece of more) socket.write(piece)
      socket.end()
    }
    socket.on("connect", () => {
      socket.write(first)
      if (awaitsAnswer) socket.once("data", finish)
      else finish()
    })
    socket.on("data", () => {})
    // A reset is an end like any other.
    socket.on("error", () => {})
    socket.once("close", () => resume(Effect.void))
    return Effect.sync(() => socket.destroy())
  })

for (const [name, storage] of storages) {
  /** What the cloud itself says has gone wrong. */
  const errors: Array<string> = []
  const errorCollector = Logger.layer([
    Logger.make(({ logLevel, message, cause }) => {
      if (logLevel === "Error" || logLevel === "Fatal") errors.push(`${String(message)} ${String(cause)}`)
    })
  ])

  layer(Layer.provideMerge(MqttTestServer.layer(storage), errorCollector), { excludeTestServices: true })(
    `the MQTT broker on ${name}, under fire (seed ${seed})`,
    (it) => {
      /** Sends all cases, while a control device talks; then all is as it should be. */
      const withstands = Effect.fnUntraced(function*(
        deviceCount: number,
        attack: (
          dice: Dice,
          n: number,
          device: Device,
          victim: Device
        ) => Omit<Parameters<typeof converse>[0], "port">
      ) {
        errors.length = 0
        const port = RawMqttSocket.portOf((yield* MqttTestServer).tcp)
        const products = [yield* createProduct(true), yield* createProduct(false)]
        const attackers = yield* Effect.forEach(
          Array.from({ length: deviceCount }, (_, i) => products[i % 2]!),
          (product) => Fixtures.createDevice(product)
        )
        const victim = yield* Fixtures.createDevice(products[0])
        const control = yield* Fixtures.createDevice(products[1])
        const connected = yield* MqttDevice.connect(control)

        const talk = Effect.fnUntraced(function*(n: number) {
          for (let i = 0; i < 3; i++) {
            yield* connected.post({ last: n + i }, { id: `${n + i}`, qos: 1 })
            const { message } = yield* connected.take
            assert.deepInclude(message, { id: `${n + i}`, code: 200 })
          }
          const command = yield* (yield* Commands).setProperties(defaultProjectId, control.deviceId, { n })
          const { message } = yield* connected.take
          assert.deepInclude(message, { id: String(command.messageId), params: { n } })
          yield* connected.publish(
            connected.topic("thing/service/property/set_reply"),
            JSON.stringify({ id: message["id"], code: 200, data: {} }),
            1
          )
        })

        let last = 0
        for (let start = 0; start < cases; start += casesBetween) {
          last = start + 2
          const numbers = Array.from({ length: Math.min(casesBetween, cases - start) }, (_, i) => start + i)
          yield* Effect.all([
            Effect.forEach(numbers, (n) => {
              const dice = new Dice(seed + n)
              return converse({ port, ...attack(dice, n, dice.pick(attackers), victim) })
            }, { concurrency, discard: true }),
            talk(start)
          ], { concurrency: 2, discard: true })
        }

        assert.strictEqual((yield* CloudState.reported(control))["last"], last)
        assert.strictEqual(connected.client.connected, true)
        assert.strictEqual((yield* CloudState.device(control)).statusVersion, 1)
        assert.deepStrictEqual(yield* CloudState.reported(victim), {})
        assert.strictEqual((yield* CloudState.device(victim)).status, "unactive")
        assert.notProperty({}, "polluted")

        // Nothing is left of the connections that ended.
        const sessions = yield* DeviceSessions
        for (const device of attackers) {
          yield* eventually(CloudState.device(device), { until: ({ status }) => status !== "online" })
          assert.isUndefined(sessions.session(device.deviceId))
        }
        assert.deepStrictEqual([...new Set(errors)], [])
        return attackers
      })

      /** A report in one piece with what is before it takes effect and is answered. */
      const followed = Effect.fnUntraced(function*(topic: string, payload: string) {
        errors.length = 0
        const device = yield* Fixtures.createDevice()
        const wire = yield* RawMqttSocket.connect(device)
        yield* wire.write(
          publish(topic.replace("{own}", `${device.productKey}/${device.deviceName}`), { payload }),
          post(device, { after: 1 }, { id: "after", qos: 0 })
        )
        let id: unknown
        while (id !== "after") id = payloadOf(yield* wire.take)["id"]
        assert.deepInclude(yield* CloudState.reported(device), { after: 1 })
        assert.deepStrictEqual([...new Set(errors)], [])
      })

      it.effect("connected devices that send all kinds of broken messages harm nobody", () =>
        Effect.gen(function*() {
          const attackers = yield* withstands(40, (dice, _, device, victim) => ({
            localAddress: otherAddresses ? addressOf(dice.below(1000)) : undefined,
            first: Buffer.from(encode(connectPacket(device, { clean: dice.chance(0.5) }))),
            awaitsAnswer: dice.chance(0.9),
            more: conversation(dice, device, victim)
          }))
          // They are served again.
          for (const device of attackers) {
            const connected = yield* MqttDevice.connect(device)
            yield* connected.post({ level: 7 }, { id: "again", qos: 1 })
            let id: unknown
            while (id !== "again") id = (yield* connected.take).message["id"]
            assert.strictEqual((yield* CloudState.reported(device))["level"], 7)
          }
        }), timeout)

      it.effect.skipIf(!otherAddresses)(
        otherAddresses
          ? "broken CONNECT packets harm nobody"
          : "broken CONNECT packets harm nobody (SKIPPED: this machine has no loopback addresses beside 127.0.0.1)",
        () =>
          withstands(300, (dice, n, device, victim) => {
            const first = greeting(dice, device, victim)
            return {
              // Each from another one: an address with many wrong signatures is refused.
              localAddress: addressOf(1000 + n),
              first,
              awaitsAnswer: hasFirstPacket(first) && dice.chance(0.7),
              more: []
            }
          }),
        timeout
      )

      it.effect.each<readonly [string, string, string]>([
        ["a time request that is nested very deeply", "/ext/ntp/{own}/request", `{"deviceSendTime":${nested}}`],
        [
          "a shadow message with a mark that is nested very deeply",
          "/shadow/update/{own}",
          `{"clientToken":${nested}}`
        ],
        ["a shadow that is nested very deeply", "/shadow/update/{own}", `{"method":"update","state":${nested}}`],
        ["a property that is nested very deeply", "/sys/{own}/thing/event/property/post", `{"params":{"a":${nested}}}`],
        ["an event that is nested very deeply", "/sys/{own}/thing/event/alarm/post", `{"params":{"a":${nested}}}`],
        ["a log that is nested very deeply", "/sys/{own}/thing/log/post", `{"params":[{"logContent":${nested}}]}`],
        ["a diagnosis that is nested very deeply", "/sys/{own}/_thing/diag/post", `{"params":{"p":${nested}}}`],
        ["a user message that is nested very deeply", "/{own}/user/a", nested],
        ["an id that is nested very deeply", "/sys/{own}/thing/event/property/post", `{"id":${nested},"params":{}}`],
        ["an answer with data that are nested very deeply", answerTopic, `{"id":"1","code":200,"data":${nested}}`],
        ["an answer with a text that is nested very deeply", answerTopic, `{"id":"1","code":200,"message":${nested}}`],
        ["an answer with an object as id", answerTopic, `{"id":${noPrimitive},"code":200}`],
        ["an answer with an object as code", answerTopic, `{"id":"1","code":${noPrimitive}}`],
        ["an answer with an object as text", answerTopic, `{"id":"1","code":200,"message":${noPrimitive}}`],
        ["an answer with a code of no integer type", answerTopic, `{"id":"1","code":1e300}`],
        ["an answer with an infinite code", answerTopic, `{"id":"1","code":1e999}`],
        ["an answer with a NUL in its text", answerTopic, `{"id":"1","code":200,"message":"a\\u0000"}`],
        ["an answer with a NUL in its data", answerTopic, `{"id":"1","code":200,"data":{"a\\u0000":"\\u0000"}}`],
        ["the removal of a tag with a NUL", "/sys/{own}/thing/deviceinfo/delete", `{"params":[{"attrKey":"\\u0000"}]}`],
        ["an event with a NUL", "/sys/{own}/thing/event/alarm/post", `{"params":{"a\\u0000":"\\u0000"}}`],
        ["a property with a surrogate", "/sys/{own}/thing/event/property/post", `{"params":{"\\ud800":"\\ud800"}}`],
        [
          "120000 values",
          "/sys/{own}/thing/event/property/history/post",
          `{"params":[{"properties":[{"a":[${many}]}]}]}`
        ]
      ])("what follows %s is answered, and nothing has gone wrong", ([, topic, payload]) => followed(topic, payload))

      it.effect.each(["1e300", "-1e300", "1e999", "9223372036854775808"])(
        "a command that is answered with the code %s ends all the same, and nothing has gone wrong",
        (code) =>
          Effect.gen(function*() {
            errors.length = 0
            const commands = yield* Commands
            const device = yield* Fixtures.createDevice()
            const wire = yield* RawMqttSocket.connect(device)
            const { messageId } = yield* commands.setProperties(defaultProjectId, device.deviceId, { a: 1 })
            for (const each of [code, "200"]) {
              yield* wire.write(
                publish(topicOf(device, "thing/service/property/set_reply"), {
                  payload: `{"id":"${messageId}","code":${each},"data":{}}`
                })
              )
            }
            // Its reply comes after what was said before it.
            yield* wire.write(post(device, { a: 1 }, { id: "after" }))
            let id: unknown
            while (id !== "after") id = payloadOf(yield* wire.take)["id"]
            const ended = yield* commands.get(defaultProjectId, device.deviceId, messageId)
            assert.include(["succeeded", "failed"], ended.state)
            assert.isTrue(Number.isSafeInteger(ended.code))
            assert.deepStrictEqual([...new Set(errors)], [])
          })
      )
    }
  )
}
