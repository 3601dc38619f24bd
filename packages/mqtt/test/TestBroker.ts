/**
 * A cloud behind a real broker, over TLS, TCP and WebSocket.
 */
import { DeviceCloud, Objects } from "@device-cloud/core"
import { DevelopmentCertificate, MqttServer, MqttWebSocket } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import { Context, Effect, Layer } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

export class Certificate extends Context.Service<Certificate, DevelopmentCertificate.DevelopmentCertificate>()(
  "@device-cloud/mqtt/test/Certificate"
) {}

const certificate = Layer.effect(
  Certificate,
  Effect.gen(function*() {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-tls-"))),
      (directory) => Effect.promise(() => rm(directory, { recursive: true }))
    )
    return yield* DevelopmentCertificate.loadOrMake(directory)
  })
)

const broker = Layer.unwrap(
  Effect.map(
    Certificate,
    ({ certificate, key }) =>
      MqttServer.layer({ host: "127.0.0.1", tls: { port: 0, certificate, key }, tcp: { port: 0 } })
  )
)

/** `ws://…/mqtt` */
export class WebSocketUrl extends Context.Service<WebSocketUrl, { readonly url: string; readonly http: string }>()(
  "@device-cloud/mqtt/test/WebSocketUrl"
) {}

const webSocket = Layer.effect(
  WebSocketUrl,
  Effect.gen(function*() {
    const server = createServer((_, response) => response.end("plain"))
    server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 418 Teapot\r\n\r\n"))
    yield* MqttWebSocket.attach(server)
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () => Effect.sync(() => server.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => server.close())))
    )
    const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`
    return { url: `ws://${authority}/mqtt`, http: `http://${authority}` }
  })
)

/** All of it on a storage of the test's choice. */
export const brokerOn = <E>(storage: Layer.Layer<DeviceCloud.Stores, E>) =>
  webSocket.pipe(
    Layer.provideMerge(broker),
    Layer.provideMerge(certificate),
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
    Layer.provide(storage),
    Layer.provideMerge(PlatformNode.layer)
  )

export const tls = Effect.gen(function*() {
  const { mqtts } = yield* MqttServer
  return { url: mqtts!.replace("127.0.0.1", "localhost"), ca: (yield* Certificate).authority }
})

export const tcp = Effect.map(MqttServer, ({ mqtt }) => ({ url: mqtt! }))
