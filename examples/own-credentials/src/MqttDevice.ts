/**
 * A device with an MQTT client.
 */
import { Effect, Schema } from "effect"
import mqtt from "mqtt"

/** What a device presents. */
export interface Presented {
  readonly clientId: string
  readonly username?: string
  readonly password?: string
  /** Its certificate and key as PEM. */
  readonly cert?: string
  readonly key?: string
}

/** The broker that devices connect to. */
export interface Broker {
  /** For example `mqtts://localhost:8883`. */
  readonly url: string
  /** The authority of the broker as PEM. */
  readonly authority: string
}

/** The connection ended without a CONNACK. */
export class ConnectFailed extends Schema.TaggedError<ConnectFailed>()("ConnectFailed", {
  cause: Schema.Defect()
}) {}

/** Connects and disconnects; returns the return code of the CONNACK, 0: accepted. */
export const connect = ({ authority, url }: Broker, presented: Presented): Effect.Effect<number, ConnectFailed> =>
  Effect.callback((resume) => {
    const fail = (cause: unknown) => resume(Effect.fail(new ConnectFailed({ cause })))
    const client = mqtt.connect(url, { ...presented, ca: authority, reconnectPeriod: 0 })
    client.on("packetreceive", (packet) => {
      if (packet.cmd !== "connack") return
      client.end(true)
      resume(Effect.succeed(packet.returnCode ?? 0))
    })
    client.on("error", fail)
    client.on("close", () => fail("The broker has closed the connection"))
    return Effect.sync(() => void client.end(true))
  })
