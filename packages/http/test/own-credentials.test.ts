import { DeviceCredentials, type DeviceProver, ProofRefused } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { call, createDevice, createProduct, type DeviceTriple, signedQuery, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"

/** Accepts the device that the request names if its password or its Authorization header says so. */
const prover: DeviceProver = ({ authorization, device, password, transport }) => {
  if (transport !== "http" || device === undefined) return Effect.succeedNone
  if (authorization === "Token wrong") return Effect.fail(new ProofRefused({ reason: "the token is wrong" }))
  return authorization === "Token right" || password === "right" ? Effect.succeedSome(device) : Effect.succeedNone
}

const api = testApi(StorageMemory.layer).pipe(Layer.provide(Layer.succeed(DeviceCredentials, [prover])))

const createTriple = Effect.gen(function*() {
  const { product_key } = yield* createProduct()
  return (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
})

/** Posts a property with a wrong signature and whatever else is given. */
const post = Effect.fnUntraced(
  function*(device: DeviceTriple, sign: string, headers: Readonly<Record<string, string>> = {}) {
    const query = { ...yield* signedQuery(device, "PostProperty"), sign }
    return yield* call("POST", `/thing-uplink?${new URLSearchParams(query).toString()}`, {
      key: null,
      body: { params: { power: 1 } },
      headers
    })
  }
)

layer(api, { excludeTestServices: true })("the HTTP uplink with proofs of an application", (it) => {
  it.effect("a device is admitted by its sign and by its Authorization header", () =>
    Effect.gen(function*() {
      const device = yield* createTriple
      assert.strictEqual((yield* post(device, "right")).body.code, 0)
      assert.strictEqual((yield* post(device, "wrong", { authorization: "Token right" })).body.code, 0)
    }))

  it.effect("a signature admits a device as before, a wrong one does not", () =>
    Effect.gen(function*() {
      const device = yield* createTriple
      const { sign } = yield* signedQuery(device, "PostProperty")
      assert.strictEqual((yield* post(device, sign)).body.code, 0)
      assert.strictEqual((yield* post(device, "wrong")).body.code, 40110)
    }))

  it.effect("a refused proof is a wrong signature, with the reason of the prover", () =>
    Effect.gen(function*() {
      const device = yield* createTriple
      const { body, status } = yield* post(device, "wrong", { authorization: "Token wrong" })
      assert.deepStrictEqual([status, body.code, body.message], [401, 40110, "the token is wrong"])
    }))

  it.effect("a disabled device is refused", () =>
    Effect.gen(function*() {
      const device = yield* createTriple
      yield* call("PUT", `/things/${device.device_id}/status`, { body: { action: "disable" } })
      assert.strictEqual((yield* post(device, "right")).body.code, 40301)
    }))
})
