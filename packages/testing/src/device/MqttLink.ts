/**
 * The link of a device over MQTT, with the client of the package `mqtt`.
 */
import { ownerOf, shadowTopic, userCallTopic, userTopicPrefix } from "@device-cloud/alink"
import { connectText, DeviceReply, Mac, type SignMethod } from "@device-cloud/core"
import { Deferred, Duration, Effect, type Scope } from "effect"
import mqtt from "mqtt"
import { Socket } from "node:net"
import {
  checkUrl,
  ConnectRefused,
  type DeviceLink,
  type DeviceNames,
  type DeviceTriple,
  LinkError,
  type OpenLink
} from "./DeviceLink.ts"
import { arrival, outgoing } from "./DeviceTopics.ts"
import { fetchBytes } from "./Download.ts"

/** Where and how a device connects over MQTT. */
export interface MqttOptions {
  /** For example `mqtts://cloud.example.com:8883`; `mqtt:`, `ws:` and `wss:` as well. */
  readonly url: string
  /** The authority of the server's certificate as PEM. Default: those that Node.js trusts. */
  readonly ca?: string | Buffer
  /** Default `hmacsha256`. */
  readonly signMethod?: SignMethod
  /** The client id without what follows it in `|…|`. Default: the device name. */
  readonly clientId?: string
  /** How long a message waits for its reply. Default 30 seconds. */
  readonly replyTimeout?: Duration.Input
  /** Default 60 seconds. */
  readonly keepAlive?: Duration.Input
}

/** The topics on which the cloud speaks to a device. Our cloud needs no subscription, others may. */
const topicsFor = ({ deviceName, productKey }: DeviceNames): Array<string> => {
  const owner = ownerOf(`/shadow/get/${productKey}/${deviceName}`)!
  return [
    `/sys/${productKey}/${deviceName}/#`,
    `${userTopicPrefix(owner)}#`,
    userCallTopic(owner, "+", "#"),
    shadowTopic(owner),
    `/ota/device/upgrade/${productKey}/${deviceName}`,
    `/ext/ntp/${productKey}/${deviceName}/response`,
    `/ext/session/${productKey}/${deviceName}/combine/+`
  ]
}

const ended = new LinkError({ reason: "The connection has ended" })

/** Returns how the device connects. */
export const overMqtt = (device: DeviceTriple, options: MqttOptions): OpenLink<ConnectRefused, Mac> =>
  Effect.fnUntraced(function*(receive): Effect.fn.Return<DeviceLink, ConnectRefused, Mac | Scope.Scope> {
    const mac = yield* Mac
    const { replyTimeout = "30 seconds" } = options
    const patience = Duration.fromInputUnsafe(replyTimeout)
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    /** Who waits for a reply, by its key. Replies without an id come in the order of their requests. */
    const waiting = new Map<string, Array<Deferred.Deferred<DeviceReply.DeviceReply, LinkError>>>()
    const forget = (key: string, one: Deferred.Deferred<DeviceReply.DeviceReply, LinkError>) => {
      const others = (waiting.get(key) ?? []).filter((each) => each !== one)
      if (others.length === 0) waiting.delete(key)
      else waiting.set(key, others)
    }

    const take = (topic: string, payload: Buffer, done: (error?: Error) => void) => {
      const arrived = arrival(topic, payload, device)
      if (arrived._tag === "Reply") {
        const [first] = waiting.get(arrived.key) ?? []
        if (first !== undefined) {
          forget(arrived.key, first)
          Deferred.doneUnsafe(first, Effect.succeed(arrived.reply))
        }
        return done()
      }
      let isAcknowledged = false
      const acknowledge = () => void (isAcknowledged = true)
      const { message, to } = arrived
      runFork(receive({ to, message, acknowledge })).addObserver(() =>
        isAcknowledged ? done() : done(new Error("not acknowledged"))
      )
    }

    const client = yield* Effect.acquireRelease(
      connect(options, credentials(device, options, mac), take),
      (client) => Effect.sync(() => void client.end(true))
    )
    const closed = yield* Deferred.make<"lost">()
    client.once("close", () => {
      Deferred.doneUnsafe(closed, Effect.succeed("lost"))
      for (const each of [...waiting.values()].flat()) Deferred.doneUnsafe(each, Effect.fail(ended))
    })

    const publish = (topic: string, payload: string | Buffer) =>
      Effect.callback<void, LinkError>((resume) => {
        client.publish(topic, payload, { qos: 1 }, (error) => resume(error ? Effect.fail(ended) : Effect.void))
      })

    const subscribe = (names: DeviceNames, more: ReadonlyArray<string> = []) =>
      Effect.callback<void>((resume) => {
        client.subscribe([...topicsFor(names), ...more], { qos: 1 }, () => resume(Effect.void))
      })
    yield* subscribe(device, [`/ext/error/${device.productKey}/${device.deviceName}`])

    let lastId = 0
    const send: DeviceLink["send"] = Effect.fnUntraced(function*(message) {
      const { payload, reply: key, topic } = outgoing(message, String(++lastId))
      if (!client.connected) return yield* ended
      if (key === undefined) return yield* Effect.as(publish(topic, payload), DeviceReply.success({}))
      const replied = yield* Deferred.make<DeviceReply.DeviceReply, LinkError>()
      waiting.set(key, [...waiting.get(key) ?? [], replied])
      client.publish(topic, payload, { qos: 1 })
      const reply = yield* Effect.ensuring(Deferred.await(replied), Effect.sync(() => forget(key, replied)))
      if (message.method === "combine.login" && reply.code === 200) {
        yield* subscribe(message.params as unknown as DeviceNames)
      }
      return reply
    }, (sent, { method }) =>
      Effect.timeoutOrElse(sent, {
        duration: patience,
        orElse: () =>
          Effect.fail(new LinkError({ reason: `No reply to ${method} within ${Duration.format(patience)}` }))
      }))

    return {
      send,
      download: fetchBytes,
      // What is written goes nowhere, and what comes is not read.
      cut: Effect.sync(() => {
        client.stream.pause()
        client.stream.write = () => true
      }),
      closed: Deferred.await(closed),
      close: Effect.callback((resume) => {
        client.end(false, {}, () => resume(Effect.void))
      })
    }
  })

/** The three fields of CONNECT. */
export const credentials = (
  { deviceName, deviceSecret, productKey }: DeviceTriple,
  { clientId = deviceName, signMethod = "hmacsha256" }: Pick<MqttOptions, "clientId" | "signMethod">,
  mac: Mac["Service"]
) => ({
  clientId: `${clientId}|signmethod=${signMethod},authType=1|`,
  username: `${deviceName}&${productKey}`,
  password: mac.sign(signMethod, deviceSecret, connectText({ clientId, deviceName, productKey }))
})

/**
 * Connects with these fields of CONNECT. `take` gets every PUBLISH, from the first
 * one on, and calls `done` for the next; with an error, it is not confirmed.
 */
export const connect = (
  { ca, keepAlive = "60 seconds", url }: Pick<MqttOptions, "url" | "ca" | "keepAlive">,
  fields: { readonly clientId: string; readonly username: string; readonly password: string },
  take: (topic: string, payload: Buffer, done: (error?: Error) => void) => void
): Effect.Effect<mqtt.MqttClient, ConnectRefused> =>
  Effect.callback((resume) => {
    checkUrl(url, ["mqtts", "mqtt", "wss", "ws"])
    const client = mqtt.connect(url, {
      ...fields,
      ...ca === undefined ? {} : { ca },
      keepalive: Math.ceil(Duration.toSeconds(keepAlive)),
      reconnectPeriod: 0
    })
    client.handleMessage = ({ payload, topic }, done) => take(topic, payload as Buffer, done)
    // A PUBLISH that follows a PUBACK would wait for the peer's delayed TCP acknowledgement.
    if (client.stream instanceof Socket) client.stream.setNoDelay(true)
    const refuse = (reason: string, returnCode?: number) => {
      client.end(true)
      resume(Effect.fail(new ConnectRefused({ returnCode, reason })))
    }
    client.once("connect", () => resume(Effect.succeed(client)))
    client.on("error", (error) => {
      const { code } = error as { readonly code?: unknown }
      refuse(error.message, typeof code === "number" ? code : undefined)
    })
    client.once("close", () => refuse("The connection has ended before the CONNACK"))
    return Effect.sync(() => void client.end(true))
  })
