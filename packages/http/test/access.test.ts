import { call, createDevice, createProduct, ownerKey, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

interface Operation {
  readonly method: string
  /** Below `/openapi/v1`, with `{parameters}`. */
  readonly path: string
  readonly operationId: string
}

const prefix = "/openapi/v1"

/** What devices call with signatures in the place of access keys, and browsers with an access key in the body. */
const withoutKey = new Set(["/auth/register/device", "/auth/generator/device", "/thing-uplink", "/browser-sessions"])

/** Every operation of the management API, as it describes itself. */
const operations = Effect.map(
  call("GET", "//openapi.json", { key: null }),
  ({ text }): ReadonlyArray<Operation> =>
    Object.entries(JSON.parse(text).paths as Record<string, Record<string, { readonly operationId: string }>>)
      .filter(([path]) => !withoutKey.has(path.slice(prefix.length)))
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { operationId }]) => ({
          method: method.toUpperCase(),
          path: path.slice(prefix.length),
          operationId
        }))
      )
)

/** A body that each operation takes, by its id. */
const bodies: Readonly<Record<string, object>> = {
  "products.createProduct": productBody,
  "products.updateProduct": { name: "Stolen", dynamic_register: true, photo_url: "" },
  "products.setProductStatus": { status: "released" },
  "devices.createDevice": {},
  "batches.createBatch": { num: 1 },
  "devices.changeDevice": { nickname: "Stolen" },
  "devices.changeDeviceStatus": { action: "disable" },
  "devices.updateDeviceShadow": { state: { desired: { stolen: true } } },
  "devices.rotateDeviceSecret": {},
  "products.rotateProductSecret": {},
  "devices.setDeviceTags": { tags: { stolen: "yes" } },
  "thingModels.importThingModel": { model_type: "metadata", model_data: "{}" },
  "thingModels.copyThingModel": {},
  "thingModels.compareThingModel": { to_version: 0 },
  "thingModels.addThingModelElement": { type: "event", element: { id: "stolen", name: "Stolen" } },
  "thingModels.updateThingModelElement": { type: "event", element: { id: "stolen", name: "Stolen" } },
  "commands.setDeviceProperties": { params: { stolen: true } },
  "commands.callDeviceService": { params: {} },
  "commands.sendUserMessage": { topic: "stolen", payload: "" },
  "devices.setDeviceDiagnosis": { enabled: true },
  "traces.startTrace": { minutes: 1 },
  "ota.startUpgrade": { task_id: 1 },
  "ota.createFirmware": {
    name: "Stolen",
    version: "1.0.0",
    oss_path: "https://example.com/x",
    algorithms: 1,
    hash: "0".repeat(32)
  },
  "ota.setSigningKey": { public_key: "stolen" },
  "ota.createVerifyTask": { device_ids: ["x"] },
  "ota.createUpgradeTask": { scope_mode: 0 },
  "ota.decideVerifyTask": { result: true },
  "ota.cancelUpgradeTask": {},
  "ota.cancelDeviceUpgrade": {},
  "ota.confirmUpgradeTask": {},
  "ota.openUpgradeStage": { stage: 1 },
  "ota.confirmDeviceUpgrade": {},
  "topology.changeTopology": { action: "sub.add.start" },
  "topology.addSubDevices": {
    params: [{ device_name: "x", product_key: "x", sign_method: "hmacsha1", sign: "x" }]
  },
  "topology.removeSubDevices": { params: [{ device_name: "x", product_key: "x" }] },
  "mesh.createMeshNetwork": {},
  "mesh.addMeshNode": { product_key: "x", device_name: "x", sign: "x", sign_method: "aescmac", node_type: 1 },
  "mesh.sendMeshRawData": { raw_data: "00" },
  "ble.checkBleIdentity": { device_name: "x", random: "0".repeat(32), cipher: "0".repeat(32) },
  "bindings.createBindRandom": {},
  "objects.uploadObject": {},
  "objects.uploadFirmwareFile": {},
  "scenes.createScene": { name: "Stolen", status: "enable" },
  "scenes.updateScene": { name: "Stolen", status: "enable" },
  "scenes.runScene": {},
  "scenes.setSceneStatus": { status: "disable" },
  "scenes.explainScene": { type: "cron" },
  "scenes.rotateWebhookKey": {},
  "projects.createProject": { name: "Another" },
  "projects.createAccessKey": { name: "Another", role: "viewer" },
  "quotas.setQuotas": { devices: 1 },
  "historyRetention.setHistoryRetention": { days: 1 },
  "codecs.putCodec": { codec: {} },
  "codecs.tryCodec": { direction: "reports", hex: "a1", codec: {} },
  "commands.sendRaw": { data: "a1" },
  "history.queryHistory": { devices: [{ device_id: "x" }], properties: ["x"] },
  "jobs.createJob": { name: "Stolen", document: {}, device_ids: ["x"] },
  "jobs.cancelJob": {},
  "commands.broadcast": { topic: "stolen", payload: "" },
  "deviceGroups.createDeviceGroup": { name: "Stolen" },
  "deviceGroups.changeDeviceGroup": { name: "Stolen" },
  "deviceGroups.addDevicesToGroup": { device_ids: ["x"] },
  "deviceGroups.removeDevicesFromGroup": { device_ids: ["x"] },
  "subscriptions.createSubscription": { name: "Stolen" },
  "subscriptions.changeSubscription": { name: "Stolen" },
  "subscriptions.acknowledgeSubscriptionEvents": { cursor: "1-" },
  "subscriptions.seekSubscription": { to: "now" },
  "subscriptions.resumeSubscription": {},
  "bulkCommands.createBulkCommand": { device_ids: ["x"], params: { stolen: true } },
  "certificates.addCertificate": {},
  "certificates.registerAuthority": { name: "Stolen", certificate: "x" },
  "certificates.verifyAuthority": { certificate: "x" },
  "certificates.putRevocationList": { crl: "x" },
  "configurations.putProductConfiguration": { format: "json", content: "{}" },
  "configurations.pushProductConfiguration": {},
  "configurations.pushGroupConfiguration": {},
  "configurations.putDeviceConfiguration": { format: "json", content: "{}" },
  "configurations.pushDeviceConfiguration": {}
}

/** What a viewer may call besides GET, or in spite of where it stands. */
const readsOfViewers = new Set([
  "browserSessions.signOut",
  "history.queryHistory",
  "quotas.getQuotas",
  "thingModels.compareThingModel"
])

/** What each operation needs in its query, by its id. */
const queries: Readonly<Record<string, string>> = {
  "thingModels.getThingModel": "?model_type=tsl",
  "thingModels.copyThingModel": "?source_product_key=x",
  "thingModels.removeThingModelElement": "?type=event&id=x",
  "ota.getUpgrades": "?device_ids=x",
  "scenes.listUpcomingTimes": "?cron=0+0+7+*+*+*",
  "topology.listAddedSubDevices": "?session_id=x",
  "topology.addSubDevices": "?session_id=x"
}

/** The path with a value for each parameter, and the query that it needs. */
const urlOf = ({ operationId, path }: Operation, valueOf: (name: string) => string) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => valueOf(name)) + (queries[operationId] ?? "")

const bodyOf = ({ method, operationId }: Operation) => {
  if (method === "POST" || method === "PUT") assert.property(bodies, operationId, "a test body for this operation")
  return bodies[operationId]
}

const newKey = (body: object) =>
  Effect.map(call("POST", "/access-keys", { body: { name: "test", ...body } }), ({ body }) => body.data.key as string)

const newProject = Effect.map(
  call("POST", "/projects", { body: { name: "Other" } }),
  ({ body }) => body.data.id as string
)

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`access on ${name}`, (it) => {
    it.effect("lets nobody in without a valid key, on any route", () =>
      Effect.gen(function*() {
        const all = yield* operations
        assert.isAtLeast(all.length, 22)
        for (const operation of all) {
          const path = urlOf(operation, () => "x")
          for (
            const key of [
              null,
              "",
              "x",
              `${ownerKey}x`,
              ownerKey.slice(0, -1),
              `dck_${"o".repeat(12)}_${"1".repeat(43)}`
            ]
          ) {
            const { body, status } = yield* call(operation.method, path, { key, body: bodyOf(operation) })
            assert.deepStrictEqual([status, body.code], [401, 40100], `${operation.method} ${path}`)
          }
        }
        const basic = yield* call("GET", "/products", { key: null, headers: { authorization: `Basic ${ownerKey}` } })
        assert.strictEqual(basic.body.code, 40100)
        const lowerCase = yield* call("GET", "/products", {
          key: null,
          headers: { authorization: `bearer ${ownerKey}` }
        })
        assert.strictEqual(lowerCase.body.code, 0)
      }))

    it.effect("refuses an expired key with 40101 and a deleted one with 40100", () =>
      Effect.gen(function*() {
        const expired = yield* newKey({ role: "viewer", expires_at: "2020-01-01T00:00:00+00:00" })
        const answer = yield* call("GET", "/products", { key: expired })
        assert.deepStrictEqual([answer.status, answer.body.code], [401, 40101])
        const { body } = yield* call("POST", "/access-keys", {
          body: { name: "short", role: "viewer", expires_at: "2999-12-31T23:59:59+08:00" }
        })
        assert.deepInclude(body.data, {
          name: "short",
          role: "viewer",
          project_id: "default",
          expires_at: "2999-12-31T15:59:59.000Z"
        })
        assert.strictEqual((yield* call("GET", "/products", { key: body.data.key })).body.code, 0)
        const list = (yield* call("GET", "/access-keys?page_size=100")).body.data
        assert.strictEqual(JSON.stringify(list).includes(body.data.key.slice(17)), false)
        assert.deepInclude(list.results[0], { id: body.data.id, name: "short" })
        assert.deepStrictEqual((yield* call("DELETE", `/access-keys/${body.data.id}`)).body, {
          code: 0,
          message: "success"
        })
        assert.strictEqual((yield* call("GET", "/products", { key: body.data.key })).body.code, 40100)
        assert.strictEqual((yield* call("DELETE", `/access-keys/${body.data.id}`)).body.code, 40412)
      }))

    it.effect("keeps the owner's key, whoever wants it gone", () =>
      Effect.gen(function*() {
        const path = `/access-keys/${ownerKey.slice(4, 16)}`
        for (const key of [ownerKey, yield* newKey({ role: "admin" })]) {
          assert.strictEqual((yield* call("DELETE", path, { key })).body.code, 40900)
        }
      }))

    it.effect("takes dates as in RFC 3339 only", () =>
      Effect.gen(function*() {
        const dates = [
          "1",
          "2030",
          "Tue Mar 01 2030",
          "-004713-01-01T00:00:00Z",
          "2030-13-01T00:00:00Z",
          "2030-02-29T00:00:00Z",
          "2030-04-31T12:00:00+02:00",
          "2030-12-31T24:00:00Z",
          "9999-12-31T23:59:59-00:01",
          "0000-01-01T00:00:00+00:01"
        ]
        for (const date of dates) {
          const { body } = yield* call("POST", "/access-keys", {
            body: { name: "x", role: "viewer", expires_at: date }
          })
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues ?? {})], [40001, ["expires_at"]], date)
        }
        for (const date of ["2028-02-29T00:00:00Z", "2030-01-01t01:00:00.1234567890z", "9999-12-31T23:59:59.999Z"]) {
          const { body } = yield* call("POST", "/access-keys", {
            body: { name: "x", role: "viewer", expires_at: date }
          })
          assert.strictEqual(body.data.expires_at.slice(0, 19), date.slice(0, 19).toUpperCase())
        }
      }))

    it.effect("gives each role what it may do, and no more", () =>
      Effect.gen(function*() {
        const keys = {
          viewer: yield* newKey({ role: "viewer" }),
          operator: yield* newKey({ role: "operator" }),
          admin: yield* newKey({ role: "admin" })
        }
        const order = ["viewer", "operator", "admin", "owner"]
        for (const operation of yield* operations) {
          // It does not end.
          if (operation.operationId === "events.streamEvents") continue
          const needed = readsOfViewers.has(operation.operationId)
            ? "viewer"
            : operation.path.startsWith("/projects")
            ? "owner"
            : /^\/(?:access-keys|audit|rule-engine\/webhook-key)/.test(operation.path)
            ? "admin"
            : /^ota\.(?:set|remove)SigningKey$/.test(operation.operationId)
            ? "admin"
            : operation.method === "GET" && operation.operationId !== "subscriptions.readSubscriptionEvents"
            ? "viewer"
            : "operator"
          const path = urlOf(
            operation,
            (name) => /^(?:batch|bulk|firmware|group|job|subscription|task)_id$/.test(name) ? "1" : "missing"
          )
          for (const [role, key] of Object.entries(keys)) {
            const { body, status } = yield* call(operation.method, path, { key, body: bodyOf(operation) })
            const allowed = order.indexOf(role) >= order.indexOf(needed)
            assert.strictEqual(status === 403, !allowed, `${role}: ${operation.method} ${path}`)
            assert.strictEqual(body.code === 40300, !allowed)
          }
        }
      }))

    it.effect("hides everything from other projects, on any route", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id, device_name } = yield* createDevice(product_key)
        const { body: { data: { batch_id } } } = yield* call("POST", `/products/${product_key}/batch-things`, {
          body: { num: 1 }
        })
        const firmware = yield* call("POST", `/products/${product_key}/ota/firmwares`, {
          body: bodies["ota.createFirmware"]
        })
        const firmware_id = firmware.body.data.id
        const task = yield* call("POST", `/ota/firmwares/${firmware_id}/upgrade-tasks`, { body: { scope_mode: 0 } })
        const job = yield* call("POST", "/jobs", {
          body: { name: "Mine", document: {}, device_ids: [device_id] }
        })
        const group = yield* call("POST", "/device-groups", { body: { name: `Mine ${device_id}` } })
        const bulk = yield* call("POST", "/bulk-commands", { body: { device_ids: [device_id], params: { power: 1 } } })
        const subscription = yield* call("POST", "/subscriptions", { body: { name: `Mine ${device_id}` } })
        const network = yield* call("POST", "/mesh/networks")
        const { network_key } = network.body.data
        const { body: { data: mine } } = yield* call("POST", "/access-keys", { body: { name: "mine", role: "viewer" } })
        const { body: { data: scene } } = yield* call("POST", "/rule-engine/scenes", {
          body: { name: `Mine ${mine.id}`, status: "enable" }
        })
        const { body: { data: secret } } = yield* call("GET", "/rule-engine/webhook-key")
        const key = yield* newKey({ role: "admin", project_id: yield* newProject })
        const parameters: Readonly<Record<string, string>> = {
          product_key,
          device_id,
          batch_id: String(batch_id),
          group_id: String(group.body.data.group_id),
          subscription_id: String(subscription.body.data.subscription_id),
          bulk_id: String(bulk.body.data.bulk_id),
          firmware_id: String(firmware_id),
          task_id: String(task.body.data.task_id),
          job_id: String(job.body.data.job_id),
          device_name: device_name!,
          network_key,
          id: mine.id,
          project_id: "default"
        }
        for (const operation of yield* operations) {
          if (operation.path.startsWith("/projects") || operation.operationId === "events.streamEvents") continue
          // The log repeats the ids that the key itself has asked for.
          if (operation.operationId === "audit.listAuditEntries") continue
          const path = urlOf(
            operation,
            (name) => operation.path.startsWith("/rule-engine") ? scene.id : parameters[name] ?? name
          )
          const { body, status } = yield* call(operation.method, path, { key, body: bodyOf(operation) })
          if (operation.path.includes("{")) {
            assert.deepStrictEqual([status, Math.floor(body.code / 100)], [404, 404], `${operation.method} ${path}`)
          } else if (operation.method === "GET") {
            const foreign = JSON.stringify(body)
            for (const id of [product_key, device_id, network_key, mine.id, scene.id, secret.key]) {
              assert.notInclude(foreign, id)
            }
          }
        }
        const kept = (yield* call("GET", `/rule-engine/scenes/${scene.id}`)).body.data
        assert.deepInclude(kept, { name: `Mine ${mine.id}`, status: "enable" })
        const { results } = (yield* call("GET", `/things?product_key=${product_key}`, { key })).body.data
        assert.deepStrictEqual(results, [])
        const untouched = (yield* call("GET", `/things/${device_id}/detail`)).body.data.device_info
        assert.deepInclude(untouched, { enabled_status: "enable", product_name: "Thermometer" })
        assert.strictEqual((yield* call("GET", `/products/${product_key}`)).body.data.product_info.status, "developing")
      }))

    it.effect("lets an owner manage projects, and name one for a key; nobody else", () =>
      Effect.gen(function*() {
        const id = yield* newProject
        const { body } = yield* call("GET", `/projects/${id}`)
        assert.deepInclude(body.data, { id, name: "Other" })
        const listed = (yield* call("GET", "/projects?page_size=100")).body.data.results
        assert.isTrue(listed.some((project: { readonly id: string }) => project.id === "default"))
        const admin = yield* newKey({ role: "admin", project_id: id })
        const foreign = yield* call("POST", "/access-keys", {
          key: admin,
          body: { name: "x", role: "viewer", project_id: "default" }
        })
        assert.deepStrictEqual([foreign.status, foreign.body.code], [403, 40300])
        const nowhere = yield* call("POST", "/access-keys", {
          body: { name: "x", role: "viewer", project_id: "missing" }
        })
        assert.strictEqual(nowhere.body.code, 40412)
        const owner = yield* call("POST", "/access-keys", { body: { name: "x", role: "owner" } })
        assert.deepStrictEqual([owner.body.code, Object.keys(owner.body.data.issues)], [40001, ["role"]])
        const date = yield* call("POST", "/access-keys", { body: { name: "x", role: "admin", expires_at: "tomorrow" } })
        assert.deepStrictEqual([date.body.code, Object.keys(date.body.data.issues)], [40001, ["expires_at"]])

        const { product_key } = yield* createProduct({}, { key: admin })
        assert.strictEqual((yield* call("DELETE", `/projects/${id}`)).body.code, 40900)
        yield* call("DELETE", `/products/${product_key}`, { key: admin })
        assert.strictEqual((yield* call("DELETE", `/projects/${id}`)).body.code, 0)
        // The keys of a project go with it, at once.
        assert.strictEqual((yield* call("GET", "/products", { key: admin })).body.code, 40100)
        assert.strictEqual((yield* call("GET", `/projects/${id}`)).body.code, 40412)
        assert.strictEqual((yield* call("DELETE", "/projects/default")).body.code, 40900)
      }))
  })
}
