import { defaultProjectId, DeviceId, Devices, type SignMethod } from "@device-cloud/core"
import { SimulatedDevice } from "@device-cloud/testing"
import { call, createDevice, createProduct, type DeviceTriple, sign, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { storages } from "../../../vitest.storages.ts"

interface TestDevice extends DeviceTriple {
  readonly device_id: string
}

const gatewayBody = { node_type: "gateway" }

const newDevice = (product: object = {}) =>
  Effect.flatMap(
    createProduct(product),
    ({ product_key }) => Effect.map(createDevice(product_key), (device) => device as unknown as TestDevice)
  )

const newNetwork = Effect.map(
  call("POST", "/mesh/networks"),
  ({ body }) => body.data.network_key as string
)

/** A body that adds the device, signed by it. */
const nodeOf = Effect.fnUntraced(function*(device: DeviceTriple, fields: Readonly<Record<string, unknown>> = {}) {
  const { device_name, device_secret, product_key } = device
  const { sign_method = "hmacsha1", ...rest } = fields
  return {
    product_key,
    device_name,
    sign_method,
    sign: yield* sign(sign_method as SignMethod, device_secret, `deviceName${device_name}productKey${product_key}`),
    node_type: 1,
    ...rest
  }
})

const add = (networkKey: string, device: DeviceTriple, fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.flatMap(nodeOf(device, fields), (body) => call("POST", `/mesh/networks/${networkKey}/nodes`, { body }))

const addresses = (networkKey: string) =>
  Effect.map(
    call("GET", `/mesh/networks/${networkKey}/nodes`),
    ({ body }) =>
      body.data.results.map(({ device_id, mesh_addr }: Readonly<Record<string, unknown>>) => [device_id, mesh_addr])
  )

/** The device with a connection that lasts as long as the scope. */
const connect = ({ device_id }: TestDevice) =>
  Effect.flatMap(Devices, (devices) => devices.get(defaultProjectId, { deviceId: DeviceId.make(device_id) })).pipe(
    Effect.flatMap(({ device }) => SimulatedDevice.connect(device))
  )

const done = { code: 0, message: "success" }
const hexKey = /^[0-9a-f]{32}$/

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`mesh networks on ${name}`, (it) => {
    it.effect("are made with keys that are given or made, read, listed and deleted", () =>
      Effect.gen(function*() {
        const network_key = `${Date.UTC(2026, 0, 1)}`.padEnd(32, name === "memory" ? "a" : "b")
        const given = { network_key, app_key: "0".repeat(32) }
        assert.deepStrictEqual((yield* call("POST", "/mesh/networks", { body: given })).body, { ...done, data: given })
        const { body: { data: record } } = yield* call("GET", `/mesh/networks/${network_key.toUpperCase()}`)
        const { created_at, updated_at, ...rest } = record
        assert.deepStrictEqual(rest, { ...given, unicast_cursor: 0x0100, provisioner_cursor: 1 })
        assert.strictEqual(created_at, updated_at)
        const taken = yield* call("POST", "/mesh/networks", { body: { network_key: network_key.toUpperCase() } })
        assert.deepStrictEqual([taken.status, taken.body.code], [409, 40901])
        const made = yield* Effect.forEach(
          [undefined, {}, { network_key: "", app_key: "" }],
          (body) => call("POST", "/mesh/networks", { body })
        )
        const keys = made.flatMap(({ body }) => Object.values(body.data) as ReadonlyArray<string>)
        assert.strictEqual(new Set(keys).size, 6)
        for (const key of keys) assert.match(key, hexKey)
        const { results } = (yield* call("GET", "/mesh/networks?page_size=100")).body.data
        assert.strictEqual(results[0].network_key, made[2]!.body.data.network_key)
        assert.deepStrictEqual(results.find((each: typeof record) => each.network_key === network_key), record)
        assert.deepStrictEqual((yield* call("DELETE", `/mesh/networks/${network_key}`)).body, done)
        for (const method of ["DELETE", "GET"]) {
          const { body, status } = yield* call(method, `/mesh/networks/${network_key}`)
          assert.deepStrictEqual([status, body.code], [404, 40407])
        }
      }))

    it.effect.each<readonly [object, string]>([
      [{ network_key: "0".repeat(31) }, "network_key"],
      [{ network_key: "0".repeat(33) }, "network_key"],
      [{ network_key: "g".repeat(32) }, "network_key"],
      [{ app_key: "0".repeat(31) }, "app_key"],
      [{ app_key: 5 }, "app_key"]
    ])("are not made with %j", ([body, field]) =>
      Effect.gen(function*() {
        const answer = yield* call("POST", "/mesh/networks", { body })
        assert.deepStrictEqual([answer.body.code, Object.keys(answer.body.data.issues)], [40001, [field]])
      }))

    it.effect("give each node an address of its kind, its own or the next", () =>
      Effect.gen(function*() {
        const network = yield* newNetwork
        const gateway = yield* newDevice(gatewayBody)
        const nodes = yield* Effect.forEach(["hmacsha1", "hmacmd5", "aescmac"], (sign_method) =>
          Effect.map(newDevice(), (device) => ({ device, sign_method })))
        const [first, second, third] = nodes as [typeof nodes[0], typeof nodes[0], typeof nodes[0]]
        assert.deepStrictEqual((yield* add(network, first.device, { sign_method: first.sign_method })).body, done)
        const { sign } = yield* nodeOf(second.device, { sign_method: "hmacmd5" })
        const upper = { sign_method: "hmacmd5", sign: sign.toUpperCase(), mesh_addr: 0x0200 }
        assert.deepStrictEqual((yield* add(network, second.device, upper)).body, done)
        assert.deepStrictEqual((yield* add(network, third.device, { sign_method: third.sign_method })).body, done)
        assert.deepStrictEqual((yield* add(network, gateway, { node_type: 2 })).body, done)
        assert.deepStrictEqual(yield* addresses(network), [
          [gateway.device_id, 1],
          [third.device.device_id, 0x0201],
          [second.device.device_id, 0x0200],
          [first.device.device_id, 0x0100]
        ])
        const { data } = (yield* call("GET", `/mesh/networks/${network}`)).body
        assert.deepInclude(data, { unicast_cursor: 0x0202, provisioner_cursor: 2 })

        const twice = yield* add(network, first.device)
        assert.deepStrictEqual([twice.status, twice.body.code], [409, 40900])
        const other = yield* newDevice()
        const taken = yield* add(network, other, { mesh_addr: 0x0200 })
        assert.deepStrictEqual([taken.status, taken.body.code], [409, 40901])
        assert.include(taken.body.message, "mesh_addr")
        // The address of a node that has left may be asked for.
        const node = `/mesh/networks/${network}/nodes/${second.device.device_id}`
        assert.deepStrictEqual((yield* call("DELETE", node)).body, done)
        const gone = yield* call("DELETE", node)
        assert.deepStrictEqual([gone.status, gone.body.code], [404, 40408])
        assert.strictEqual((yield* call("DELETE", `/mesh/networks/${network}/nodes/unknown`)).body.code, 40408)
        assert.strictEqual((yield* call("DELETE", `/mesh/networks/unknown/nodes/unknown`)).body.code, 40407)
        assert.strictEqual((yield* add(network, other, { mesh_addr: 0x0200 })).body.code, 0)
        // A node goes with its device.
        yield* call("DELETE", `/things/${other.device_id}`)
        assert.strictEqual((yield* addresses(network)).length, 3)
      }))

    it.effect("give each of many nodes that are added at once an address of its own", () =>
      Effect.gen(function*() {
        const network = yield* newNetwork
        const { product_key } = yield* createProduct()
        const devices = yield* Effect.forEach(Array.from({ length: 12 }), () => createDevice(product_key))
        const answers = yield* Effect.forEach(devices, (device) => add(network, device as unknown as TestDevice), {
          concurrency: "unbounded"
        })
        for (const { body } of answers) assert.deepStrictEqual(body, done)
        const { body } = yield* call("GET", `/mesh/networks/${network}/nodes?page_size=100`)
        assert.sameMembers(
          body.data.results.map(({ mesh_addr }: { readonly mesh_addr: number }) => mesh_addr),
          devices.map((_, i) => 0x0100 + i)
        )
      }))

    it.effect.each<readonly [Readonly<Record<string, unknown>>, string]>([
      [{ mesh_addr: 0x00ff }, "mesh_addr"],
      [{ mesh_addr: 0x8000 }, "mesh_addr"],
      [{ mesh_addr: -1 }, "mesh_addr"],
      [{ mesh_addr: 1.5 }, "mesh_addr"],
      [{ node_type: 2, mesh_addr: 0x0100 }, "mesh_addr"],
      [{ node_type: 0 }, "node_type"],
      [{ node_type: 3 }, "node_type"],
      [{ node_type: undefined }, "node_type"],
      [{ sign_method: "hmacsha256" }, "sign_method"],
      [{ sign: undefined }, "sign"],
      [{ device_name: 5 }, "device_name"],
      [{ product_key: undefined }, "product_key"]
    ])("take no node with %j", ([fields, field]) =>
      Effect.gen(function*() {
        const network = yield* newNetwork
        const { body } = yield* add(network, yield* newDevice(gatewayBody), fields)
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, [field]])
        assert.deepStrictEqual(yield* addresses(network), [])
      }))

    it.effect("take no device that has not signed, is disabled, of another project, or no gateway", () =>
      Effect.gen(function*() {
        const network = yield* newNetwork
        const [device, other] = [yield* newDevice(), yield* newDevice()]
        const wrong = [
          "",
          "0".repeat(40),
          (yield* nodeOf(other)).sign,
          (yield* nodeOf(device, { sign_method: "hmacmd5" })).sign,
          yield* sign(
            "hmacsha1",
            device.device_secret,
            `productKey${device.product_key}deviceName${device.device_name}`
          )
        ]
        for (const sign of wrong) {
          const { body, status } = yield* add(network, device, { sign })
          assert.deepStrictEqual([status, body.code], [401, 40110], sign)
        }
        const notAGateway = yield* add(network, device, { node_type: 2 })
        assert.deepStrictEqual([notAGateway.status, notAGateway.body.code], [400, 40004])
        yield* call("PUT", `/things/${other.device_id}/status`, { body: { action: "disable" } })
        assert.strictEqual((yield* add(network, other)).body.code, 40301)
        assert.strictEqual((yield* add(network, { ...device, device_name: "unknown" })).body.code, 40402)
        assert.strictEqual((yield* add("unknown", device)).body.code, 40407)
        const { body: { data: { id: project_id } } } = yield* call("POST", "/projects", { body: { name: "Other" } })
        const { body: { data: { key } } } = yield* call("POST", "/access-keys", {
          body: { name: "test", role: "admin", project_id }
        })
        // The other project may have a network of the same key, without the device.
        const same = yield* call("POST", "/mesh/networks", { key, body: { network_key: network } })
        assert.strictEqual(same.body.code, 0)
        const foreign = yield* call("POST", `/mesh/networks/${network}/nodes`, { key, body: yield* nodeOf(device) })
        assert.deepStrictEqual([foreign.status, foreign.body.code], [404, 40402])
        assert.deepStrictEqual(yield* addresses(network), [])
      }))

    it.effect("hand bytes to all gateways that are connected", () =>
      Effect.gen(function*() {
        const network = yield* newNetwork
        const send = (raw_data: unknown) => call("POST", `/mesh/networks/${network}/raw-data`, { body: { raw_data } })
        for (const raw_data of ["", "0", "abc", "zz", "00 ", "00".repeat(513), 5, null]) {
          const { body } = yield* send(raw_data)
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["raw_data"]])
        }
        const [first, second, away] = [
          yield* newDevice(gatewayBody),
          yield* newDevice(gatewayBody),
          yield* newDevice(gatewayBody)
        ]
        const node = yield* newDevice()
        yield* add(network, node)
        const nodeConnected = yield* connect(node)
        for (const gateway of [first, second, away]) yield* add(network, gateway, { node_type: 2 })
        const nobody = yield* send("d101ff")
        assert.deepStrictEqual([nobody.status, nobody.body.code], [409, 40900])
        const connected = [yield* connect(first), yield* connect(second)]
        for (const raw_data of ["D101ff", "00".repeat(512)]) {
          assert.deepStrictEqual((yield* send(raw_data)).body, done)
          for (const { received } of connected) {
            const { id, ...message } = yield* Queue.take(received)
            assert.match(id, /^\d+$/)
            assert.deepStrictEqual(message, { method: "thing.mesh.raw", params: { network_key: network, raw_data } })
          }
        }
        assert.strictEqual(yield* Queue.size(nodeConnected.received), 0)
        const unknown = yield* call("POST", "/mesh/networks/unknown/raw-data", { body: { raw_data: "00" } })
        assert.strictEqual(unknown.body.code, 40407)
      }))

    it.effect("are changed by their gateways over HTTP, and by nobody else", () =>
      Effect.gen(function*() {
        const network_key = yield* newNetwork
        const [gateway, stranger] = [yield* newDevice(gatewayBody), yield* newDevice(gatewayBody)]
        const node = yield* newDevice()
        yield* add(network_key, gateway, { node_type: 2 })
        const say = (from: TestDevice, method: string, params: object) =>
          Effect.map(
            uplink(from, "PostMeshTopo", { query: { method }, body: { id: "1", params: { network_key, ...params } } }),
            ({ body }) => body
          )
        const draft = yield* nodeOf(node, { sign_method: "aescmac" })
        const name = { product_key: node.product_key, device_name: node.device_name }
        for (const [method, params] of [["add", draft], ["delete", name], ["get", {}]] as const) {
          assert.deepInclude(yield* say(stranger, method, params), { code: 40900, data: { device_code: 6401 } })
          const elsewhere = yield* say(gateway, method, { ...params, network_key: "0".repeat(32) })
          assert.deepInclude(elsewhere, { code: 40900, data: { device_code: 6401 } })
        }
        assert.deepStrictEqual(yield* say(gateway, "add", draft), { ...done, data: { mesh_addr: 0x0100 } })
        // It asks again when it has not heard the answer.
        assert.deepStrictEqual(yield* say(gateway, "add", draft), { ...done, data: { mesh_addr: 0x0100 } })
        const anywhere = { ...draft, mesh_addr: 0 }
        assert.deepStrictEqual(yield* say(gateway, "add", anywhere), { ...done, data: { mesh_addr: 0x0100 } })
        const refusals: ReadonlyArray<readonly [string, object, number, number]> = [
          ["add", { ...draft, mesh_addr: 0x0300 }, 40001, 460],
          ["add", { ...draft, mesh_addr: 0x8000 }, 40001, 460],
          ["add", { ...draft, node_type: 5 }, 40001, 460],
          ["add", { ...draft, node_type: 2 }, 40004, 6402],
          ["add", { ...draft, sign: "0".repeat(32) }, 40110, 6287],
          ["add", { ...draft, device_name: "unknown" }, 40402, 6100],
          ["delete", { product_key: node.product_key }, 40001, 460],
          ["delete", { ...name, device_name: "unknown" }, 40402, 6100],
          ["get", { page_size: 101 }, 40001, 460],
          ["get", { network_key: 5 }, 40001, 460]
        ]
        for (const [method, params, code, device_code] of refusals) {
          const refused = yield* say(gateway, method, params)
          assert.deepStrictEqual([refused.code, refused.data.device_code], [code, device_code])
        }
        assert.deepStrictEqual((yield* say(gateway, "get", {})).data, [
          { ...name, mesh_addr: 0x0100, node_type: 1 },
          { product_key: gateway.product_key, device_name: gateway.device_name, mesh_addr: 1, node_type: 2 }
        ])
        assert.deepStrictEqual((yield* say(gateway, "get", { page: 2, page_size: 1 })).data.length, 1)
        assert.deepStrictEqual(yield* say(gateway, "delete", name), { ...done, data: {} })
        assert.deepInclude(yield* say(gateway, "delete", name), { code: 40900, data: { device_code: 6401 } })
        assert.deepStrictEqual(yield* addresses(network_key), [[gateway.device_id, 1]])
      }))
  })
}
