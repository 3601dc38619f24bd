/**
 * Registration of a device that knows only the secret of its product
 * (docs/protocol/provisioning.md).
 */
import { generatorText, Mac, type SignMethod } from "@device-cloud/core"
import { Deferred, Effect } from "effect"
import { randomBytes } from "node:crypto"
import { addressAt, checkUrl, ConnectRefused, type DeviceNames, type DeviceTriple } from "./DeviceLink.ts"
import { connect } from "./MqttLink.ts"

/** What a device registers with. */
export interface Registration extends DeviceNames {
  /** `mqtts:` registers with a CONNECT, `http:` and `https:` with a form. */
  readonly url: string
  readonly productSecret: string
  /** The authority of the MQTT server's certificate as PEM. Default: those that Node.js trusts. */
  readonly ca?: string | Buffer
  /** Default `hmacsha256`. */
  readonly signMethod?: SignMethod
}

/** Returns the triple of the device. */
export const registerOver = Effect.fnUntraced(function*(options: Registration) {
  const { deviceName, productKey, productSecret, signMethod = "hmacsha256", url } = options
  checkUrl(url, ["mqtts", "https", "http", "mqtt", "wss", "ws"])
  const random = randomBytes(8).toString("hex")
  const sign = (yield* Mac).sign(signMethod, productSecret, generatorText({ deviceName, productKey, random }))
  return yield* url.startsWith("http")
    ? overHttp(url, { productKey, deviceName, random, signMethod, sign })
    : overMqtt(options, {
      clientId: `${deviceName}|authType=register,random=${random},signmethod=${signMethod}|`,
      username: `${deviceName}&${productKey}`,
      password: sign
    })
})

const overHttp = (url: string, fields: Readonly<Record<string, string>>): Effect.Effect<DeviceTriple, ConnectRefused> =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(addressAt(url, "/auth/register/device"), {
        method: "POST",
        body: new URLSearchParams(fields),
        signal
      })
      const { code, data, message } = await response.json() as {
        readonly code: number
        readonly message: string
        readonly data: DeviceTriple
      }
      if (code !== 200) throw new Error(`${code} ${message}`)
      const { deviceName, deviceSecret, productKey } = data
      return { productKey, deviceName, deviceSecret }
    },
    catch: (error) =>
      new ConnectRefused({ returnCode: undefined, reason: error instanceof Error ? error.message : String(error) })
  })

const overMqtt = (
  options: Pick<Registration, "url" | "ca">,
  fields: { readonly clientId: string; readonly username: string; readonly password: string }
): Effect.Effect<DeviceTriple, ConnectRefused> =>
  Effect.gen(function*() {
    const triple = yield* Deferred.make<DeviceTriple, ConnectRefused>()
    const take = (topic: string, payload: Buffer, done: () => void) => {
      if (topic === "/ext/register") Deferred.doneUnsafe(triple, Effect.succeed(JSON.parse(payload.toString())))
      done()
    }
    const client = yield* Effect.acquireRelease(
      connect(options, fields, take),
      (client) => Effect.sync(() => void client.end(true))
    )
    const reason = "The connection has ended before the secret came"
    client.once("close", () => Deferred.doneUnsafe(triple, Effect.fail(new ConnectRefused({ returnCode: 0, reason }))))
    return yield* Deferred.await(triple)
  }).pipe(Effect.scoped)
