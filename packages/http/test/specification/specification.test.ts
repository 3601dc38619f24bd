/**
 * The tables of the specification, held against the API.
 */
import { defaultProjectId, DeviceId, Devices } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { SimulatedDevice } from "@device-cloud/testing"
import {
  type ApiResponse,
  call,
  type CallOptions,
  createDevice,
  createProduct,
  testApi
} from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { storages } from "../../../../vitest.storages.ts"
import { type Fields, type Kind, listOf, members, parameter } from "./Fields.ts"
import { filters, limits } from "./Limits.ts"
import { meshNode } from "./MeshOperations.ts"
import { type Given, type Input, type Operation } from "./Operation.ts"
import { operations } from "./Operations.ts"
import { model } from "./ProductOperations.ts"
import { sceneBody } from "./SceneOperations.ts"
import { content, image, objects } from "./UpgradeOperations.ts"
import { bindReport, uplinkQuery, uplinks } from "./UplinkOperations.ts"

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

const fits = (value: unknown, kind: Kind): boolean => {
  switch (kind) {
    case "string":
      return typeof value === "string"
    case "int":
      return Number.isSafeInteger(value)
    case "bool":
      return typeof value === "boolean"
    case "seconds":
      return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < 1e11
    case "date":
      return value === null || (typeof value === "string" && (value === "" || dateTime.test(value)))
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value)
    case "list":
      return Array.isArray(value)
    case "any":
      return value !== undefined
  }
  if ("oneOf" in kind) return kind.oneOf.includes(value as string | number)
  return "each" in kind ? Array.isArray(value) : fits(value, "object")
}

/** The paths at which a value is not what the specification says. */
const misfits = (value: unknown, kind: Kind, path: string): ReadonlyArray<string> => {
  if (!fits(value, kind)) return [`${path}: ${JSON.stringify(value)} is not ${JSON.stringify(kind)}`]
  if (typeof kind === "string" || "oneOf" in kind) return []
  if ("each" in kind) {
    return (value as ReadonlyArray<unknown>).flatMap((item, i) => misfits(item, members(kind.each), `${path}[${i}]`))
  }
  return Object.entries(kind.members).flatMap(([name, member]) =>
    misfits((value as Readonly<Record<string, unknown>>)[name], member, `${path}.${name}`)
  )
}

const assertFits = (value: unknown, kind: Kind, path: string) => {
  const found = misfits(value, kind, path)
  assert.isEmpty(found, found.join("\n"))
}

/** Each field with its path, members of members too. */
const withPaths = (fields: Fields, path = ""): ReadonlyArray<readonly [string, Kind]> =>
  Object.entries(fields).flatMap(([name, kind]) => [
    [path + name, kind] as const,
    ...typeof kind === "object" && "members" in kind ? withPaths(kind.members, `${path}${name}.`) : []
  ])

/** Values that are not what a field of a body holds. */
const wrongValues = (kind: Kind): ReadonlyArray<unknown> => {
  switch (kind) {
    case "string":
    case "date":
      return [5, true, {}, ["text"]]
    case "int":
    case "seconds":
      return ["5", 1.5, true, {}, [5]]
    case "bool":
      return ["true", 1, {}]
    case "object":
      return ["text", 5, true, [], ["text"]]
    case "list":
      return ["text", 5, {}]
    case "any":
      return []
  }
  return "oneOf" in kind ? ["nonsense", 99, true, {}] : wrongValues("members" in kind ? "object" : "list")
}

/** Texts that are not what a field of a query holds. */
const wrongTexts = (kind: Kind): ReadonlyArray<string> => {
  if (kind === "int") return ["x", "1.5"]
  return typeof kind === "object" && "oneOf" in kind ? ["nonsense", "0"] : []
}

const change = (target: Readonly<Record<string, unknown>>, path: string, value: unknown): Record<string, unknown> => {
  const [name = "", ...rest] = path.split(".")
  if (rest.length === 0) return { ...target, [name]: value }
  return { ...target, [name]: change(target[name] as Readonly<Record<string, unknown>>, rest.join("."), value) }
}

/** The input with another value in a field; undefined: without it. */
const changed = ({ query = {} }: Operation, input: Input, path: string, value: unknown): Input =>
  path in query
    ? { ...input, query: { ...input.query, [path]: value as string | undefined } }
    : { ...input, body: change(input.body ?? {}, path, value) }

const multipart = (file: string, field = "file") => ({
  raw: `--limit\r\nContent-Disposition: form-data; name="${field}"; filename="firmware.bin"\r\n` +
    `Content-Type: application/octet-stream\r\n\r\n${file}\r\n--limit--\r\n`,
  headers: { "content-type": "multipart/form-data; boundary=limit" }
})

const optionsOf = ({ body, file }: Input): CallOptions => file === undefined ? { body } : multipart(file)

const pathOf = ({ on = {}, path }: Operation, given: Given) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: keyof Given) => String(given[on[name] ?? name]))

const send = (operation: Operation, given: Given, unsigned: Input) => {
  const input = operation.sign?.(given, unsigned) ?? unsigned
  const query = Object.entries(input.query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]
  )
  const path = pathOf(operation, given) + (query.length === 0 ? "" : `?${query.join("&")}`)
  return call(operation.method, path, { ...optionsOf(input), ...operation.sign === undefined ? {} : { key: null } })
}

const callsOf = (operation: Operation, given: Given) => operation.calls?.(given) ?? [{}]

/** Status, code and the fields that are refused. */
const refusal = ({ body, status }: ApiResponse) => [status, body.code, ...Object.keys(body.data?.issues ?? {})]

/** Firmware of a module each: with a task, with one that awaits confirmation, with one that verifies, without. */
const makeTasks = Effect.fnUntraced(function*({ device_id, product_key }: Given) {
  const ask = (method: string, path: string, body?: object) =>
    Effect.map(call(method, path, { body }), ({ body }) => {
      assert.strictEqual(body.code, 0, body.message)
      return body.data
    })
  const firmware = (module: string) =>
    Effect.map(
      ask("POST", `/products/${product_key}/ota/firmwares`, { ...image, version: "1.1.0", module }),
      ({ id }) => id as number
    )
  const upgrade = (firmwareId: number, need_app_confirm: boolean) =>
    Effect.map(
      ask("POST", `/ota/firmwares/${firmwareId}/upgrade-tasks`, {
        scope_mode: 1,
        device_ids: [device_id],
        need_app_confirm
      }),
      ({ task_id }) => task_id as number
    )
  const firmware_id = yield* firmware("default")
  const verified_firmware_id = yield* firmware("radio")
  yield* ask("POST", `/ota/firmwares/${verified_firmware_id}/verify-task`, { device_ids: [device_id] })
  const { task_id: verify_task_id } = yield* ask("GET", `/ota/firmwares/${verified_firmware_id}/verify-task`)
  return {
    firmware_id,
    task_id: yield* upgrade(firmware_id, false),
    idle_firmware_id: yield* firmware("idle"),
    confirmable_task_id: yield* upgrade(yield* firmware("motor"), true),
    verified_firmware_id,
    verify_task_id: verify_task_id as number
  }
})

/** A mesh network that the gateway is a node of, and one without nodes. */
const makeNetworks = Effect.fnUntraced(function*({ gateway_name, gateway_product_key, gateway_secret }: Given) {
  const create = Effect.map(call("POST", "/mesh/networks"), ({ body }) => body.data.network_key as string)
  const [network_key, empty_network_key] = [yield* create, yield* create]
  const { body } = yield* call("POST", `/mesh/networks/${network_key}/nodes`, {
    ...meshNode("hmacsha1", [gateway_product_key, gateway_name, gateway_secret], { node_type: 2 })
  })
  assert.strictEqual(body.code, 0, body.message)
  return { network_key, empty_network_key }
})

/** A product with a model, a device that has reported and waits for a call, a batch, and more products. */
const makeGiven = Effect.gen(function*() {
  const { product_key, product_secret } = yield* createProduct({ dynamic_register: true })
  const { product_key: empty_product_key } = yield* createProduct()
  const { product_key: source_product_key } = yield* createProduct()
  const { product_key: cloud_gateway_product_key } = yield* createProduct({ data_source: 3 })
  for (const key of [product_key, source_product_key]) {
    const { body } = yield* call("POST", `/products/${key}/thing-model`, {
      body: { model_type: "metadata", model_data: JSON.stringify(model) }
    })
    assert.strictEqual(body.code, 0, body.message)
  }
  const { device_id, device_name, device_secret } = yield* createDevice(product_key)
  const created = yield* call("POST", `/products/${product_key}/batch-things`, { body: { num: 2 } })
  const given: Given = {
    product_key,
    product_secret: product_secret!,
    empty_product_key,
    source_product_key,
    cloud_gateway_product_key,
    device_id,
    device_name: device_name!,
    device_secret: device_secret!,
    batch_id: created.body.data.batch_id,
    service_id: "reset",
    ...yield* makeTopology,
    message_id: "",
    firmware_id: 0,
    task_id: 0,
    idle_firmware_id: 0,
    confirmable_task_id: 0,
    verified_firmware_id: 0,
    verify_task_id: 0,
    network_key: "",
    empty_network_key: "",
    scene_id: ""
  }
  yield* send(uplinks[0]!, given, callsOf(uplinks[0]!, given)[0]!)
  yield* call("PUT", `/things/${device_id}/shadow`, { body: { state: { desired: { power: 1 } } } })
  const service = yield* call("POST", `/things/${device_id}/services/reset`, { body: { params: { delay: 1 } } })
  yield* send(bindReport, given, callsOf(bindReport, given)[0]!)
  const scene = yield* call("POST", "/rule-engine/scenes", { body: sceneBody(given, `Given ${device_id}`) })
  return {
    ...given,
    message_id: service.body.data.message_id as string,
    scene_id: scene.body.data.id as string,
    ...yield* makeTasks(given),
    ...yield* makeNetworks(given)
  }
})

/** A gateway with a sub-device that was added in a session, and a sub-device that belongs to none. */
const makeTopology = Effect.gen(function*() {
  const gateway = yield* createProduct({ node_type: "gateway" })
  const sub = yield* createProduct({ node_type: "gateway-sub", network_type: undefined, protocol_type: "zigbee" })
  const { device_id: gateway_id, device_name, device_secret } = yield* createDevice(gateway.product_key)
  const attached = yield* createDevice(sub.product_key)
  const free = yield* createDevice(sub.product_key)
  const { body } = yield* call("PUT", `/things/${gateway_id}/topo`, { body: { action: "sub.add.start" } })
  const given = {
    gateway_id,
    gateway_product_key: gateway.product_key,
    gateway_name: device_name!,
    gateway_secret: device_secret!,
    session_id: body.data.session_id as string,
    sub_product_key: sub.product_key,
    sub_name: attached.device_name!,
    free_sub_name: free.device_name!,
    free_sub_secret: free.device_secret!
  }
  const add = operations.find(({ method, path }) => method === "POST" && path.endsWith("/topo/sub-devices"))!
  const added = { ...given, free_sub_name: given.sub_name, free_sub_secret: attached.device_secret! } as Given
  yield* send(add, added, callsOf(add, added)[0]!)
  return given
})

const connect = (deviceId: string) =>
  Effect.flatMap(Devices, (devices) => devices.get(defaultProjectId, { deviceId: DeviceId.make(deviceId) })).pipe(
    Effect.flatMap(({ device }) => SimulatedDevice.connect(device))
  )

interface Described {
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string }>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: DescribedBody }>> }
}

interface DescribedBody {
  readonly properties?: object
  readonly anyOf?: ReadonlyArray<DescribedBody>
}

const describedOperations = Effect.map(
  call("GET", "//openapi.json", { key: null }),
  ({ text }) => JSON.parse(text).paths as Readonly<Record<string, Readonly<Record<string, Described>>>>
)

const describedFields = ({ anyOf = [], properties = {} }: DescribedBody): ReadonlyArray<string> => [
  ...Object.keys(properties),
  ...anyOf.flatMap(describedFields)
]

const titled = operations.map((operation) => {
  const { calls, method, on, path } = operation
  const action = calls?.({} as Given)[0]?.query?.["action"]
  const title = `${method} ${path}${action === undefined ? "" : ` ${action}`}${on === undefined ? "" : " elsewhere"}`
  return [title, operation] as const
})

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("the description", (it) => {
  let described: Effect.Success<typeof describedOperations> | undefined

  it.effect.each(titled)("%s is described, and is a route", ([, operation]) =>
    Effect.gen(function*() {
      const { body = {}, method, path, query = {} } = operation
      described ??= yield* describedOperations
      const found = described[`/openapi/v1${path}`]?.[method.toLowerCase()]
      assert.isDefined(found)
      const content = Object.values(found!.requestBody?.content ?? {})
      assert.includeMembers(content.flatMap(({ schema }) => describedFields(schema)), Object.keys(body))
      assert.includeMembers(
        (found!.parameters ?? []).map(({ name, in: place }) => `${place} ${name}`),
        [
          ...Object.keys(query).filter((name) => name !== "ts").map((name) => `query ${name}`),
          ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `path ${name}`)
        ]
      )
      const answer = yield* call(method, path.replaceAll(/[{}]/g, ""))
      assert.notInclude([40400, 40500], answer.body.code)
    }))
})

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`the specification on ${name}`, (it) => {
    const once = () => {
      let made: Given | undefined
      return Effect.suspend(() =>
        made === undefined ? Effect.tap(makeGiven, (given) => Effect.sync(() => made = given)) : Effect.succeed(made)
      )
    }
    /** For requests that change nothing. */
    const sharedGiven = once()
    /** For requests that leave to others what they need. */
    const changedGiven = once()
    /** For requests at the limits of what is taken. */
    const limitedGiven = once()
    const givenFor = ({ method, spoils = method === "DELETE" }: Operation) =>
      method === "GET" ? sharedGiven : spoils ? makeGiven : changedGiven

    it.effect.each(titled)("%s answers what is specified", ([, operation]) =>
      Effect.gen(function*() {
        const given = yield* givenFor(operation)
        if (operation.connected !== undefined) yield* connect(given[operation.connected])
        for (const input of callsOf(operation, given)) {
          const { body, status, text } = yield* send(operation, given, input)
          assert.deepStrictEqual([status, body.code], [200, 0], `${JSON.stringify(input)} ${text}`)
          assert.isString(body.message)
          if (operation.data === undefined) assert.notProperty(body, "data")
          else assertFits(body.data, operation.data === "list" ? "list" : members(operation.data), "data")
        }
      }))

    it.effect.each(titled)("%s refuses what is not specified, and names it", ([, operation]) =>
      Effect.gen(function*() {
        const given = yield* sharedGiven
        const { body = {}, query = {}, refuses = [], required = [] } = operation
        const [first = {}] = callsOf(operation, given)
        const refused = (input: Input, field: string) =>
          Effect.map(send(operation, given, input), (answer) =>
            assert.deepStrictEqual(refusal(answer), [400, 40001, field], `${JSON.stringify(input)} ${answer.text}`))
        for (const field of required) {
          const without = changed(operation, first, field, undefined)
          // A signature that is left out is not made.
          yield* field === "sign" && operation.sign !== undefined
            ? refused(changed(operation, operation.sign(given, first), field, undefined), field)
            : refused(without, field)
        }
        for (const [field, kind] of withPaths(body)) {
          for (const value of wrongValues(kind)) {
            yield* refused(changed(operation, first, field, value), field)
          }
        }
        for (const [field, kind] of withPaths(query)) {
          for (const value of wrongTexts(kind)) {
            yield* refused(changed(operation, first, field, value), field)
          }
        }
        for (const [changes, field] of refuses) {
          const input = Object.entries(changes).reduce(
            (input, [path, value]) =>
              changed(operation, input, path, value),
            first
          )
          yield* refused(input, field)
        }
      }))

    it.effect.each(limits.map((limit) => [limit.method, limit.path, limit.field, limit] as const))(
      "%s %s keeps the limit of %s",
      ([method, path, field, { refuses, takes }]) =>
        Effect.gen(function*() {
          const operation = operations.find((operation) => operation.method === method && operation.path === path)!
          const given = yield* operation.spoils === true ? makeGiven : limitedGiven
          const [first = {}] = callsOf(operation, given)
          for (const value of takes) {
            const { body, text } = yield* send(operation, given, changed(operation, first, field, value))
            assert.strictEqual(body.code, 0, `${JSON.stringify(value)} ${text}`)
          }
          for (const value of refuses) {
            const answer = yield* send(operation, given, changed(operation, first, field, value))
            assert.deepStrictEqual(refusal(answer), [400, 40001, field], JSON.stringify(value))
          }
        })
    )

    it.effect("data types have type, length, size and elementType", () =>
      Effect.gen(function*() {
        const { product_key } = yield* sharedGiven
        const { body } = yield* call("GET", `/products/${product_key}/thing-model?model_type=metadata`)
        const { properties } = body.data.thing_model
        assert.deepStrictEqual(
          properties.map(({ dataType }: { readonly dataType: unknown }) => dataType),
          model.properties.map(({ dataType }) => dataType)
        )
      }))

    it.effect("services take {id, name, dataType}, the generated ones too", () =>
      Effect.gen(function*() {
        const { product_key } = yield* sharedGiven
        const { body } = yield* call("GET", `/products/${product_key}/thing-model?model_type=metadata`)
        const services: ReadonlyArray<{ readonly id: string; readonly inputData: unknown }> =
          body.data.thing_model.services
        assert.sameMembers(services.map(({ id }) => id), ["set", "get", "reset"])
        for (const { id, inputData } of services) assertFits(inputData, listOf(parameter), `${id}.inputData`)
      }))

    it.effect("lists begin with page 1 of 10 items, unless something else is asked for", () =>
      Effect.gen(function*() {
        const { product_key } = yield* makeGiven
        yield* call("POST", `/products/${product_key}/batch-things`, { body: { num: 12 } })
        const list = (query: string) => Effect.map(call("GET", `/things?${query}`), ({ body }) => body.data)
        const first = yield* list(`product_key=${product_key}`)
        assert.deepInclude(first, { page: 1, page_size: 10, total: 15, pages: 2 })
        assert.lengthOf(first.results, 10)
        const second = yield* list(`product_key=${product_key}&page=2`)
        assert.deepInclude(second, { page: 2, page_size: 10, total: 15, pages: 2 })
        assert.lengthOf(second.results, 5)
      }))

    it.effect.each(filters)("GET %s lists nothing that does not fit", ([path, queries]) =>
      Effect.gen(function*() {
        const given = yield* sharedGiven
        const list = (query: string) =>
          Effect.map(call("GET", `${pathOf({ method: "GET", path }, given)}?${query}`), ({ body }) => body.data)
        assert.isAbove((yield* list("")).total, 0)
        for (const query of queries) assert.deepInclude(yield* list(query), { results: [], total: 0 }, query)
      }))

    it.effect("an action over HTTP that needs an id is refused without it", () =>
      Effect.gen(function*() {
        const given = yield* sharedGiven
        for (const operation of uplinks) {
          for (const field of operation.required!.slice(Object.keys(uplinkQuery).length)) {
            const [first = {}] = callsOf(operation, given)
            const answer = yield* send(operation, given, changed(operation, first, field, undefined))
            assert.deepStrictEqual(refusal(answer), [400, 40001, field])
          }
        }
      }))

    it.effect("the address of an upload takes GET and DELETE", () =>
      Effect.gen(function*() {
        const given = yield* changedGiven
        for (const operation of objects) {
          const { body: { data } } = yield* send(operation, given, { file: content })
          assert.strictEqual(data.md5, createHash("md5").update(content).digest("hex"))
          if ("size" in data) assert.strictEqual(data.size, content.length)
          const { pathname } = new URL(data.url ?? data.filename)
          assert.strictEqual((yield* call("GET", `/${pathname}`, { key: null })).text, content)
          assert.strictEqual((yield* call("DELETE", `/${pathname}`)).body.code, 0)
          assert.strictEqual((yield* call("GET", `/${pathname}`)).status, 404)
        }
      }))

    it.effect.each(objects.map((operation) => [operation.path, operation] as const))(
      "POST %s needs a form with a field file",
      ([, operation]) =>
        Effect.gen(function*() {
          const path = pathOf(operation, yield* sharedGiven)
          assert.deepStrictEqual(refusal(yield* call("POST", path, multipart(content, "other"))), [400, 40001, "file"])
        })
    )
  })
}
