/**
 * A cloud behind a real broker on loopback: over TCP, TLS and WebSocket.
 */
import { DeviceCloud, Objects } from "@device-cloud/core"
import { DevelopmentCertificate, type Limits, ListeningTimes, MqttServer, MqttWebSocket } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Context, Effect, Layer } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Where a broker listens. */
export interface Endpoint {
  /** For example `mqtts://localhost:8883`. */
  readonly url: string
  /** The certificate (PEM) of the authority that signed the broker's certificate. Default: those that Node.js trusts. */
  readonly ca?: string
}

/** Which of its endpoints a device uses. */
export type Transport = "tcp" | "tls" | "webSocket"

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-tls-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true }))
)

class Certificate extends Context.Service<Certificate, DevelopmentCertificate.DevelopmentCertificate>()(
  "@device-cloud/testing/mqtt/Certificate"
) {
  static readonly layer = Layer.effect(
    Certificate,
    Effect.flatMap(temporaryDirectory, DevelopmentCertificate.loadOrMake)
  )
}

const broker = (limits: Partial<Limits>) =>
  Layer.unwrap(
    Effect.map(
      Certificate,
      ({ certificate, key }) =>
        MqttServer.layer({
          host: "127.0.0.1",
          tls: { port: 0, certificate, key, clientCertificates: true },
          tcp: { port: 0 },
          limits
        })
    )
  )

/** An HTTP server that upgrades `/mqtt` to MQTT. Returns the URL of that path. */
const webSocketServer = Effect.gen(function*() {
  const server = createServer((_, response) => response.writeHead(404).end())
  yield* MqttWebSocket.attach(server)
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/mqtt`
})

const make = Effect.gen(function*() {
  const { mqtt, mqtts } = yield* MqttServer
  const { authority, authorityFile } = yield* Certificate
  return MqttTestServer.of({
    tcp: { url: mqtt! },
    // The certificate is made out to this name.
    tls: { url: mqtts!.replace("127.0.0.1", "localhost"), ca: authority },
    webSocket: { url: yield* webSocketServer },
    authorityFile
  })
})

export class MqttTestServer extends Context.Service<MqttTestServer, {
  /** Plain MQTT. */
  readonly tcp: Endpoint
  /** MQTT over TLS 1.2 and 1.3, with a certificate that is made for the test. */
  readonly tls: Endpoint
  /** MQTT over WebSocket. */
  readonly webSocket: Endpoint
  /** The path of the file that holds `tls.ca`, for clients in other processes. */
  readonly authorityFile: string
}>()("@device-cloud/testing/mqtt/MqttTestServer") {
  /** The broker alone, for a cloud that is there. */
  static readonly layerBroker = (
    limits: Partial<Limits> = {},
    times: ListeningTimes = { quiet: 0, longest: 0, shadow: 0 }
  ) =>
    Layer.effect(MqttTestServer, make).pipe(
      Layer.provideMerge(broker(limits).pipe(Layer.provide(Layer.succeed(ListeningTimes, times)))),
      Layer.provide(Certificate.layer)
    )

  /**
   * A whole cloud on the given stores, with objects in memory. Everything in it
   * is at hand for the test as well. It runs on the real clock: leave
   * `TestClock` out (`layer(…, { excludeTestServices: true })` in `@effect/vitest`).
   * `limits` of the broker: as in `MqttServer.layer`. `times`: the broker waits for
   * no software of a device unless you say so.
   */
  static readonly layer = <A extends DeviceCloud.Stores, E>(
    stores: Layer.Layer<A, E>,
    limits: Partial<Limits> = {},
    times: ListeningTimes = { quiet: 0, longest: 0, shadow: 0 }
  ) =>
    MqttTestServer.layerBroker(limits, times).pipe(
      Layer.provideMerge(DeviceCloud.layer),
      Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
      Layer.provideMerge(stores),
      Layer.provideMerge(PlatformNode.layer)
    )

  /** {@link layer} with stores in memory. */
  static readonly layerMemory = MqttTestServer.layer(StorageMemory.layer)
}
