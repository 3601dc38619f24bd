import { call, createDevice, createProduct, type DeviceTriple, sign, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

type Sub = DeviceTriple & { readonly device_id: string }

const createSubDevices = Effect.fnUntraced(function*(count: number) {
  const { product_key } = yield* createProduct({
    node_type: "gateway-sub",
    network_type: undefined,
    protocol_type: "zigbee"
  })
  return (yield* Effect.forEach(Array.from({ length: count }), () => createDevice(product_key))) as unknown as
    & ReadonlyArray<Sub>
    & readonly [Sub, Sub]
})

const createGateway = Effect.gen(function*() {
  const { product_key } = yield* createProduct({ node_type: "gateway" })
  return (yield* createDevice(product_key)) as unknown as Sub
})

const nameOf = ({ device_name, product_key }: DeviceTriple) => ({ device_name, product_key })
const idOf = ({ device_id, ...triple }: Sub) => ({ ...nameOf(triple), device_id })

const signed = (device: DeviceTriple) =>
  Effect.map(
    sign("hmacsha1", device.device_secret, `deviceName${device.device_name}productKey${device.product_key}`),
    (sign) => ({ ...nameOf(device), sign_method: "hmacsha1", sign })
  )

const startSession = (gateway: Sub, params?: object) =>
  Effect.map(
    call("PUT", `/things/${gateway.device_id}/topo`, { body: { action: "sub.add.start", params } }),
    ({ body }) => body.data.session_id as string
  )

const add = (gateway: Sub, sessionId: string, params: ReadonlyArray<unknown>) =>
  call("POST", `/things/${gateway.device_id}/topo/sub-devices?session_id=${sessionId}`, { body: { params } })

const remove = (gateway: Sub, params: ReadonlyArray<unknown>) =>
  call("DELETE", `/things/${gateway.device_id}/topo/sub-devices`, { body: { params } })

const listed = (gateway: Sub) =>
  Effect.map(call("GET", `/things/${gateway.device_id}/topo`), ({ body }) => body.data.sub_devices)

/** Code, and the fields that are refused. */
const refusal = (
  { body }: { readonly body: { readonly code: number; readonly data?: { readonly issues?: object } } }
) => [
  body.code,
  ...Object.keys(body.data?.issues ?? {})
]

const statusOf = ({ device_id }: Sub) =>
  Effect.map(call("GET", `/things/${device_id}/status`), ({ body }) => body.data.status)

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`gateway topology on ${name}`, (it) => {
    it.effect("tells the gateway of a sub-device, and the add-session that is open", () =>
      Effect.gen(function*() {
        const gateway = yield* createGateway
        const [mine, free] = yield* createSubDevices(2)
        const read = (device: Sub, what: string) =>
          Effect.map(call("GET", `/things/${device.device_id}/topo/${what}`), ({ body }) => body)
        assert.deepStrictEqual((yield* read(gateway, "session")).data, { session: null })
        const sessionId = yield* startSession(gateway, { timeout: 60, product_keys: [mine.product_key] })
        const { ends_at, started_at, ...session } = (yield* read(gateway, "session")).data.session
        assert.deepStrictEqual(session, { session_id: sessionId, product_keys: [mine.product_key] })
        assert.strictEqual(Date.parse(ends_at) - Date.parse(started_at), 60_000)
        yield* add(gateway, sessionId, [yield* signed(mine)])
        const stop = { action: "sub.add.stop", session_id: sessionId }
        yield* call("PUT", `/things/${gateway.device_id}/topo`, { body: stop })
        assert.deepStrictEqual((yield* read(gateway, "session")).data, { session: null })
        assert.deepStrictEqual((yield* read(mine, "gateway")).data, { gateway: idOf(gateway) })
        assert.deepStrictEqual((yield* read(free, "gateway")).data, { gateway: null })
        assert.strictEqual((yield* read(mine, "session")).code, 40004)
        for (const what of ["gateway", "session"]) {
          assert.strictEqual((yield* call("GET", `/things/missing/topo/${what}`)).body.code, 40402)
        }
        yield* remove(gateway, [nameOf(mine)])
        assert.deepStrictEqual((yield* read(mine, "gateway")).data, { gateway: null })
      }))

    it.effect("sub-devices are added in a session, listed, counted and removed", () =>
      Effect.gen(function*() {
        const gateway = yield* createGateway
        const [a, b] = yield* createSubDevices(2)
        const first = yield* startSession(gateway)
        const added = yield* add(gateway, first, [yield* signed(b), yield* signed(a)])
        assert.deepStrictEqual(added.body.data, [idOf(b), idOf(a)])
        const second = yield* startSession(gateway, { product_keys: [a.product_key], timeout: 3600 })
        assert.deepStrictEqual((yield* add(gateway, second, [yield* signed(a)])).body.data, [idOf(a)])
        const members = (sessionId: string) =>
          Effect.map(
            call("GET", `/things/${gateway.device_id}/topo/sub-devices?session_id=${sessionId}`),
            ({ body }) => body.data.sub_devices
          )
        assert.deepStrictEqual([yield* members(first), yield* members(second)], [[idOf(b), idOf(a)], []])
        assert.deepStrictEqual(yield* listed(gateway), [idOf(b), idOf(a)])
        const { body } = yield* call("GET", `/things/${gateway.device_id}/detail`)
        assert.strictEqual(body.data.device_info.sub_amount, 2)
        assert.deepStrictEqual((yield* remove(gateway, [nameOf(b)])).body, { code: 0, message: "success" })
        assert.deepStrictEqual(yield* listed(gateway), [idOf(a)])
      }))

    it.effect("what cannot be added is refused, and nothing is added with it", () =>
      Effect.gen(function*() {
        const [gateway, other] = [yield* createGateway, yield* createGateway]
        const [taken, free] = yield* createSubDevices(2)
        const [strange] = yield* createSubDevices(1)
        const direct = (yield* createDevice((yield* createProduct()).product_key)) as unknown as Sub
        yield* add(other, yield* startSession(other), [yield* signed(taken)])
        const sessionId = yield* startSession(gateway, { product_keys: [free.product_key] })
        const right = yield* signed(free)
        const anySession = yield* Effect.andThen(startSession(gateway), Effect.succeed(sessionId))
        const open = yield* startSession(gateway)
        const refused = (session: string, ...params: ReadonlyArray<unknown>) =>
          Effect.map(add(gateway, session, params), refusal)
        assert.deepStrictEqual(
          [
            yield* refused(open, right, yield* signed(taken)),
            yield* refused(open, right, { ...right, sign: "0".repeat(40) }, yield* signed(strange)),
            yield* refused(open, yield* signed(strange), { ...right, sign: "0".repeat(40) }),
            yield* refused(open, { ...right, sign_method: "aescmac" }),
            yield* refused(open, right, yield* signed(direct)),
            yield* refused(open, right, yield* signed(other)),
            yield* refused(open, { ...right, device_name: "unknown" }),
            yield* refused(open),
            yield* refused(anySession, right),
            yield* refused("unknown", right)
          ],
          [
            [40906],
            [40001, "params[1].device_name"],
            [40110],
            [40001, "params[0].sign_method"],
            [40004],
            [40004],
            [40402],
            [40001, "params"],
            [40900],
            [40410]
          ]
        )
        const only = yield* startSession(gateway, { product_keys: [free.product_key] })
        assert.deepStrictEqual(yield* refused(only, right, yield* signed(strange)), [40001, "params[1].product_key"])
        assert.deepStrictEqual(yield* listed(gateway), [])
        assert.deepStrictEqual(refusal(yield* remove(gateway, [nameOf(taken)])), [40906])
        assert.deepStrictEqual(refusal(yield* remove(gateway, [nameOf(free)])), [40402])
        assert.deepStrictEqual(yield* listed(other), [idOf(taken)])
      }))

    it.effect("only a gateway has sub-devices, and only of products of its project that are made for it", () =>
      Effect.gen(function*() {
        const gateway = yield* createGateway
        const [sub] = yield* createSubDevices(1)
        const direct = (yield* createDevice((yield* createProduct()).product_key)) as unknown as Sub
        const start = (device_id: string, params: object) =>
          Effect.map(
            call("PUT", `/things/${device_id}/topo`, { body: { action: "sub.add.start", params } }),
            refusal
          )
        assert.deepStrictEqual(
          [
            yield* start(direct.device_id, {}),
            yield* start(sub.device_id, {}),
            yield* start("unknown", {}),
            yield* start(gateway.device_id, { product_keys: ["unknown"] }),
            yield* start(gateway.device_id, { product_keys: [direct.product_key] }),
            yield* start(gateway.device_id, { timeout: 3601 }),
            refusal(yield* call("GET", `/things/${direct.device_id}/topo`))
          ],
          [[40004], [40004], [40402], [40401], [40004], [40001, "params.timeout"], [40004]]
        )
      }))

    it.effect("a gateway over HTTP hears when it may try again after too many wrong signatures", () =>
      Effect.gen(function*() {
        const gateway = yield* createGateway
        const [{ device_name: deviceName, product_key: productKey }] = yield* createSubDevices(1)
        const wrong = { productKey, deviceName, signMethod: "hmacSha1", sign: "00" }
        const adding = uplink(gateway, "PostStarTopo", { query: { method: "add" }, body: { params: [wrong] } })
        for (let i = 0; i < 10; i++) assert.strictEqual((yield* adding).body.code, 40110)
        const { body, headers, status } = yield* adding
        assert.deepStrictEqual([status, body.code, headers["retry-after"]], [429, 42900, "60"])
        assert.deepStrictEqual(body.data, { device_code: 429, retry_after: 60 })
      }))

    it.effect("a sub-device of another project does not exist, whoever has signed", () =>
      Effect.gen(function*() {
        const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
        const { body: { data: { key } } } = yield* call("POST", "/access-keys", {
          body: { name: "other", role: "admin", project_id }
        })
        const { product_key } = yield* createProduct({
          node_type: "gateway-sub",
          network_type: undefined,
          protocol_type: "ble"
        }, { key })
        const { body: { data: foreign } } = yield* call("POST", `/products/${product_key}/things`, { key })
        const gateway = yield* createGateway
        const session = yield* startSession(gateway)
        const right = yield* signed(foreign)
        const wrong = { ...right, sign: "00" }
        assert.deepStrictEqual(
          [refusal(yield* add(gateway, session, [right])), refusal(yield* add(gateway, session, [wrong]))],
          [[40402], [40402]]
        )
        const tell = (method: string, params: unknown) =>
          Effect.map(
            uplink(gateway, "PostStarTopo", { query: { method }, body: { params } }),
            ({ body }) => body.data.device_code
          )
        const overMqtt = { productKey: product_key, deviceName: foreign.device_name, sign: "00" }
        assert.deepStrictEqual([yield* tell("add", [overMqtt]), yield* tell("login", overMqtt)], [6100, 6100])
      }))

    it.effect("a gateway over HTTP adds sub-devices, speaks for them, logs them in and out", () =>
      Effect.gen(function*() {
        const gateway = yield* createGateway
        const [a, b] = yield* createSubDevices(2)
        const topo = (method: string, params: unknown) =>
          Effect.map(uplink(gateway, "PostStarTopo", { query: { method }, body: { params } }), ({ body }) => body)
        const alink = ({ device_name, product_key }: Sub) => ({ productKey: product_key, deviceName: device_name })
        const proof = (device: Sub) =>
          Effect.map(signed(device), ({ sign }) => ({ ...alink(device), signMethod: "hmacSha1", sign }))
        assert.deepInclude(yield* topo("add", [yield* proof(a)]), { code: 0, data: [alink(a)] })
        assert.deepInclude(yield* topo("get", {}), { code: 0, data: [alink(a)] })
        assert.deepInclude(yield* topo("login", yield* proof(a)), { code: 0, data: alink(a) })
        assert.strictEqual(yield* statusOf(a), "online")
        assert.deepInclude(yield* topo("login", yield* proof(b)), { code: 40900, data: { device_code: 6401 } })
        const subHex = (device: Sub) =>
          Effect.map(
            uplink(gateway, "PostSubHex", { body: { params: { data: "0aff", ...nameOf(device) } } }),
            ({ body }) => body
          )
        assert.deepInclude(yield* subHex(a), { code: 0 })
        assert.deepInclude(yield* subHex(b), { code: 40900, data: { device_code: 6401 } })
        const events = yield* call("GET", `/things/${a.device_id}/events?event_id=raw`)
        assert.deepStrictEqual(
          events.body.data.results.map(({ value }: { readonly value: unknown }) => value),
          ["0aff"]
        )
        assert.deepInclude(yield* topo("logout", alink(a)), { code: 0, data: alink(a) })
        assert.strictEqual(yield* statusOf(a), "offline")
        assert.deepInclude(yield* topo("delete", [alink(a)]), { code: 0, data: [alink(a)] })
        assert.deepStrictEqual(yield* listed(gateway), [])
      }))
  })
}
