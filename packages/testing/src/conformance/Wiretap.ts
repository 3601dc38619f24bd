/**
 * Stands between devices and a broker, and hears which messages devices send. What
 * the broker answers by itself, such as the time, is seen nowhere else.
 */
import { makeRouter, methodPrefix, ownerOf } from "@device-cloud/alink"
import { Effect, type Scope } from "effect"
import { parser } from "mqtt-packet"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { Unexpected } from "./Check.ts"

export interface WiretapOptions {
  /** Where devices connect, for example `mqtt://0.0.0.0:1883`; port 0: any that is free. */
  readonly listen: string
  /** PEM; needed to listen on `mqtts:`. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  /** The broker, for example `mqtt://127.0.0.1:1884`. */
  readonly broker: string
}

export interface Wiretap {
  /** Where devices connect. */
  readonly url: string
  /** How many messages of a device method devices have sent; `time`: how often they have asked for the time. */
  readonly heard: (method: string) => number
}

const route = makeRouter(() => undefined)

/** The device method of a topic; `time` has none. */
const methodOf = (topic: string): string | undefined => {
  const owner = ownerOf(topic)
  const way = owner && route(topic, methodPrefix(owner), owner)
  return way?.form === "time" ? "time" : way?.method
}

/** Listens until the scope closes. Fails if it cannot listen there. */
export const open = Effect.fnUntraced(function*(
  { broker, listen, tls }: WiretapOptions
): Effect.fn.Return<Wiretap, Unexpected, Scope.Scope> {
  const { hostname, port, protocol } = new URL(listen)
  const to = new URL(broker)
  const counts = new Map<string, number>()
  const sockets = new Set<Socket>()

  const pass = (device: Socket) => {
    const upstream = connect({ host: to.hostname, port: Number(to.port), noDelay: true })
    const packets = parser()
    packets.on("packet", (packet) => {
      const method = packet.cmd === "publish" ? methodOf(packet.topic) : undefined
      if (method !== undefined) counts.set(method, (counts.get(method) ?? 0) + 1)
    })
    // The broker ends a connection whose packets cannot be read.
    packets.on("error", () => device.off("data", read))
    const read = (bytes: Buffer) => void packets.parse(bytes)
    device.on("data", read)
    for (const [one, other] of [[device, upstream], [upstream, device]] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on("error", () => one.destroy())
      one.once("close", () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  }

  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>, Unexpected>((resume) => {
      const server = protocol === "mqtts:" ? createTlsServer({ ...tls }, pass) : createServer({ noDelay: true }, pass)
      server.once("error", ({ message }) => resume(Effect.fail(new Unexpected({ message: `${listen}: ${message}` }))))
      server.listen(Number(port), hostname.replace(/^\[|\]$/g, ""), () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        for (const socket of sockets) socket.destroy()
      })
  )
  return {
    url: `${protocol}//${hostname}:${(server.address() as AddressInfo).port}`,
    heard: (method) => counts.get(method) ?? 0
  }
})
