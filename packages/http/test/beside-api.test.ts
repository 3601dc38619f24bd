import { DeviceCloud, Objects } from "@device-cloud/core"
import { Envelope, ManagementApi } from "@device-cloud/http"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"

class Acme extends HttpApi.make("acme").add(
  HttpApiGroup.make("shelves").add(
    HttpApiEndpoint.get("getShelf", "/acme/shelf", { success: Envelope(Schema.Struct({})) })
  )
) {}

const Cloud = DeviceCloud.layer.pipe(
  Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer)
)

layer(Cloud, { excludeTestServices: true })("an API of the application whose layer serves no routes", (it) => {
  it.effect("is an error of the server, not one of the method", () =>
    Effect.gen(function*() {
      const handle = yield* ManagementApi.fetchHandler({ readiness: {}, beside: { api: Acme, layer: Layer.empty } })
      const ask = (method: string) =>
        Effect.promise(async () => {
          const response = await handle(new Request("http://localhost/acme/shelf", { method }))
          const { code } = await response.json() as { readonly code: number }
          return [response.status, code]
        })
      assert.deepStrictEqual(yield* ask("GET"), [500, 50000])
      assert.deepStrictEqual(yield* ask("POST"), [405, 40500])
    }))
})
