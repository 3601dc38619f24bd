import {
  CertificateStore,
  type DeviceCloud,
  DeviceName,
  DeviceStore,
  KeyRing,
  MeshStore,
  ProductStore,
  type SealedDataKey,
  type StoreHealth,
  WebhookKeyStore
} from "@device-cloud/core"
import { NodeKeyRing } from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Deferred, Duration, Effect, Exit, Layer, Option, Redacted, Scope } from "effect"
import { randomBytes } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { newEmptyDatabase } from "../../../vitest.storages.ts"

type Stores = Context.Context<DeviceCloud.Stores | StoreHealth>

const newKey = () => randomBytes(32).toString("base64")

/** A node with these master keys; the first one seals. */
const nodeWith = (url: Redacted.Redacted, ...keys: ReadonlyArray<string>) =>
  Layer.build(
    Layer.fresh(
      StoragePg.layer({ url }).pipe(Layer.provide(NodeKeyRing.layerKeys(Redacted.make(keys.join(",")))))
    )
  )

const clientOf = (url: Redacted.Redacted) =>
  Effect.map(Layer.build(PgClient.layer({ url })), (context) => Context.get(context, PgClient.PgClient))

/** Everything that is in the database, as text. */
const dump = Effect.fnUntraced(function*(url: Redacted.Redacted) {
  const sql = yield* clientOf(url)
  const tables = yield* sql<{ readonly name: string }>`
    SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`
  let text = ""
  for (const { name } of tables) {
    const rows = yield* sql<{ readonly row: string }>`SELECT to_json(${sql(name)})::text AS row FROM ${sql(name)}`
    text += `${name}\n${rows.map(({ row }) => row).join("\n")}\n`
  }
  return text
}, Effect.scoped)

const run = <A>(url: Redacted.Redacted, statement: string) =>
  Effect.scoped(Effect.gen(function*() {
    const sql = yield* clientOf(url)
    return yield* sql.unsafe<A & object>(statement)
  }))

const at = Date.UTC(2026, 0, 1)

/** Stores one of everything that has secrets, and returns the secrets and what reads them. */
const storeSecrets = Effect.gen(function*() {
  const [devices, products, networks, webhooks, certificates] = [
    yield* DeviceStore,
    yield* ProductStore,
    yield* MeshStore,
    yield* WebhookKeyStore,
    yield* CertificateStore
  ]
  const secret = () => randomBytes(16).toString("hex")
  const { device, product } = yield* insertDevice
  const { deviceId, productKey, projectId } = device
  const names = { rotated: secret(), registered: secret(), batch: secret(), gateway: secret(), password: secret() }
  yield* devices.rotateSecret(projectId, deviceId, { secret: names.rotated, previousUntil: at + 60_000, at })
  const productSecret = secret()
  yield* products.rotateSecret(projectId, productKey, { secret: productSecret, previousUntil: at + 60_000, at })
  const draft = (deviceSecret: string, fields = {}) => ({
    deviceId: secret() as typeof deviceId,
    deviceName: DeviceName.make(secret()),
    deviceSecret,
    nickname: "",
    batchId: 0,
    cloudGateway: null,
    createdAt: at,
    ...fields
  })
  yield* devices.claimByName(productKey, DeviceName.make("registered"), {
    ...draft(names.registered),
    deviceName: DeviceName.make("registered")
  })
  const batch = Option.getOrThrow(
    yield* devices.insertBatch(projectId, productKey, { description: "", createdAt: at }, [draft(names.batch)])
  )
  const cloudGateway = { clientId: "c", username: "u", password: names.password, deviceUuid: "id" }
  yield* devices.insertMany(projectId, productKey, [draft(names.gateway, { cloudGateway })])
  const [networkKey, appKey] = [secret(), secret()]
  const network = {
    projectId,
    networkKey,
    appKey,
    unicastCursor: 0x100,
    provisionerCursor: 1,
    createdAt: at,
    updatedAt: at
  }
  yield* networks.insert(network)
  const keys = { current: secret(), createdAt: at + 1, previous: { key: secret(), until: at + 60_000 } }
  yield* webhooks.put(projectId, null, { ...keys, createdAt: at, previous: null })
  yield* webhooks.put(projectId, at, keys)

  const authorityKey = secret()
  const authority = {
    authorityId: secret(),
    projectId,
    kind: "own" as const,
    name: "Own",
    state: "active" as const,
    verificationCode: "",
    certificate: "PEM",
    fingerprint: secret(),
    subject: "CN=Own",
    notBefore: at,
    notAfter: at + 1,
    createdAt: at
  }
  yield* certificates.insertAuthority(authority, { privateKey: authorityKey, limit: 1 })

  /** Everything as it comes back from the stores. */
  const read = Effect.gen(function*() {
    const [devices, products, networks, webhooks, certificates] = [
      yield* DeviceStore,
      yield* ProductStore,
      yield* MeshStore,
      yield* WebhookKeyStore,
      yield* CertificateStore
    ]
    const { items } = yield* devices.list(projectId, {}, { page: 1, pageSize: 100 })
    return {
      devices: items,
      detail: yield* devices.get(projectId, { deviceId }),
      byName: yield* devices.get(projectId, { productKey, deviceName: device.deviceName }),
      credentials: yield* devices.credentials(productKey, device.deviceName),
      batch: yield* devices.devicesOfBatch(projectId, batch.batchId, { after: undefined, limit: 100 }),
      product: yield* products.find(productKey),
      products: yield* products.list(projectId, { page: 1, pageSize: 10 }),
      network: yield* networks.get(projectId, networkKey),
      networks: yield* networks.list(projectId, { page: 1, pageSize: 10 }),
      webhook: yield* webhooks.get(projectId),
      authority: yield* certificates.ownAuthority(projectId),
      isTaken: !(yield* networks.insert(network))
    }
  })
  const expected = yield* read
  const secrets = [
    ...Object.values(names),
    device.deviceSecret,
    productSecret,
    product.productSecret,
    networkKey,
    appKey,
    keys.current,
    keys.previous.key,
    authorityKey
  ]
  const shown = JSON.stringify(expected)
  for (const each of secrets) assert.include(shown, each)
  return { device, projectId, networkKey, read, expected, secrets }
})

/** Whether all rows with secrets are sealed under the data key of this number. */
const areSealedUnder = (url: Redacted.Redacted, number: number) =>
  eventually(
    run<{ readonly least: number }>(
      url,
      `SELECT min(sealed_with) AS least FROM (
        SELECT sealed_with FROM device UNION ALL SELECT sealed_with FROM product
        UNION ALL SELECT sealed_with FROM mesh_network UNION ALL SELECT sealed_with FROM webhook_key
        UNION ALL SELECT sealed_with FROM certificate_authority
      ) AS all_rows`
    ),
    { until: ([row]) => row?.least === number }
  )

const reads = (read: Effect.Success<typeof storeSecrets>["read"], node: Stores) => Effect.provide(read, node)

it.live("a dump of the database reveals no secret", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const key = newKey()
    const node = yield* nodeWith(url, key)
    const { expected, read, secrets } = yield* Effect.provide(storeSecrets, node)
    const text = yield* dump(url)
    assert.include(text, "mesh_network\n{")
    for (const secret of secrets) assert.notInclude(text, secret)
    assert.notInclude(text, key)
    assert.deepStrictEqual(yield* reads(read, yield* nodeWith(url, key)), expected)
  }).pipe(Effect.scoped))

it.live("a sealed text opens in its own row and column only; the device counts with no secret, others go on", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const key = newKey()
    const mine = yield* Effect.provide(storeSecrets, yield* nodeWith(url, key))
    const theirs = yield* Effect.provide(storeSecrets, yield* nodeWith(url, key))
    yield* run(
      url,
      `UPDATE device SET device_secret = other.device_secret, previous_secret = device.device_secret
        FROM device AS other
        WHERE device.device_id = '${mine.device.deviceId}' AND other.device_id = '${theirs.device.deviceId}'`
    )
    const fresh = yield* nodeWith(url, key)
    const credentials = yield* Effect.provide(
      DeviceStore.use(({ credentials }) =>
        Effect.forEach([mine, theirs], ({ device }) => credentials(device.productKey, device.deviceName), {
          concurrency: "unbounded"
        })
      ),
      fresh
    )
    const [first, second] = credentials.map(Option.getOrThrow)
    assert.deepInclude(first, { deviceSecret: "", previousSecret: { secret: "", until: at + 60_000 } })
    assert.deepStrictEqual(Option.some(second!), theirs.expected.credentials)
  }).pipe(Effect.scoped))

it.live("rows of an earlier version are sealed in the background, by two nodes, and work meanwhile", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const key = newKey()
    const scope = yield* Scope.make()
    const stored = yield* Effect.provide(storeSecrets, yield* Scope.provide(nodeWith(url, key), scope))
    yield* Scope.close(scope, Exit.void)
    const { expected, networkKey, projectId, read, secrets } = stored
    const product = Option.getOrThrow(expected.product)
    const network = Option.getOrThrow(expected.network)
    // As an earlier version leaves the rows: plain, with the password of the gateway in its account.
    for (const { device } of expected.devices) {
      const { cloudGateway, deviceId, deviceSecret, previousSecret } = device
      yield* run(
        url,
        `UPDATE device SET sealed_with = 0, device_secret = '${deviceSecret}', cloud_gateway_password = NULL,
          previous_secret = ${previousSecret === null ? "NULL" : `'${previousSecret.secret}'`},
          cloud_gateway = ${cloudGateway === null ? "NULL" : `'${JSON.stringify(cloudGateway)}'`}
          WHERE device_id = '${deviceId}'`
      )
    }
    yield* run(
      url,
      `UPDATE product SET sealed_with = 0, product_secret = '${product.productSecret}',
      previous_secret = '${product.previousSecret!.secret}'`
    )
    yield* run(
      url,
      `UPDATE mesh_network SET sealed_with = 0, fingerprint = NULL, network_key = '${networkKey}',
      app_key = '${network.appKey}'`
    )
    const { current, previous } = Option.getOrThrow(expected.webhook)
    yield* run(url, `UPDATE webhook_key SET sealed_with = 0, current = '${current}', previous = '${previous!.key}'`)
    yield* run(
      url,
      `UPDATE certificate_authority SET sealed_with = 0, private_key = '${
        Option.getOrThrow(expected.authority).privateKey
      }'`
    )
    yield* run(
      url,
      `INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, nickname,
        batch_id, created_at, updated_at)
      SELECT '${projectId}', '${product.productKey}', 'many' || i, 'many' || i, 'plain' || i, '', 99, now(), now()
      FROM generate_series(1, 1000) AS i`
    )
    for (const secret of secrets) assert.include(yield* dump(url), secret)
    // Each row is written once, whoever does it.
    yield* run(url, `CREATE TABLE written (id text)`)
    yield* run(
      url,
      `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO written VALUES (NEW.device_id); RETURN NEW; END $$`
    )
    yield* run(url, `CREATE TRIGGER noted AFTER UPDATE ON device FOR EACH ROW EXECUTE FUNCTION note()`)
    const nodes = yield* Effect.all([nodeWith(url, key), nodeWith(url, key)], { concurrency: "unbounded" })
    yield* areSealedUnder(url, 1)
    for (const node of nodes) {
      const { devices: _, ...found } = yield* reads(read, node)
      const { devices: __, ...rest } = expected
      assert.deepStrictEqual(found, rest)
      for (const { device } of expected.devices) {
        const reference = { deviceId: device.deviceId }
        const detail = yield* Effect.provide(DeviceStore.use((store) => store.get(projectId, reference)), node)
        assert.deepStrictEqual(Option.getOrThrow(detail).device, device)
      }
    }
    const text = yield* dump(url)
    for (const secret of [...secrets, "plain1000"]) assert.notInclude(text, secret)
    const [counts] = yield* run<{ readonly all: bigint; readonly once: bigint }>(
      url,
      `SELECT count(*) AS all, count(DISTINCT id) AS once FROM written`
    )
    assert.strictEqual(counts!.all, counts!.once)
    assert.strictEqual(Number(counts!.all), 1000 + expected.devices.length)
  }).pipe(Effect.scoped))

it.live("a wrong or lost master key stops the start and changes nothing", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const key = newKey()
    const scope = yield* Scope.make()
    const { expected, read } = yield* Effect.provide(storeSecrets, yield* Scope.provide(nodeWith(url, key), scope))
    yield* Scope.close(scope, Exit.void)
    const before = yield* dump(url)
    const wrong = yield* Effect.flip(nodeWith(url, newKey()))
    assert.strictEqual(wrong._tag, "KeyRingError")
    assert.match(wrong.message, /sealed under master key [0-9a-f]{16}/)
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-keys-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true }))
    )
    const lost = NodeKeyRing.layerFile(join(directory, "secrets-key"))
    const missing = yield* Effect.flip(
      Layer.build(Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(lost))))
    )
    assert.include(missing.message, "missing")
    assert.strictEqual(yield* dump(url), before)
    assert.deepStrictEqual(yield* reads(read, yield* nodeWith(url, key)), expected)
  }).pipe(Effect.scoped))

it.live("a new master key takes over while nodes with the old one first go on", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const [old, next] = [newKey(), newKey()]
    const running = yield* nodeWith(url, old, next)
    const { expected, networkKey, projectId, read } = yield* Effect.provide(storeSecrets, running)
    const rotated = yield* nodeWith(url, next, old)
    yield* areSealedUnder(url, 2)
    assert.deepStrictEqual(yield* reads(read, rotated), expected)
    // It meets rows that a data key seals that it has not read yet.
    assert.deepStrictEqual(yield* reads(read, running), expected)
    // A server with the earlier configuration does not turn it back.
    yield* nodeWith(url, old, next)
    const keys = yield* run<{ readonly number: number; readonly master_key: string }>(
      url,
      `SELECT number, master_key FROM data_key ORDER BY number`
    )
    const ring = yield* Effect.provide(
      Effect.service(KeyRing),
      Layer.fresh(NodeKeyRing.layerKeys(Redacted.make(next)))
    )
    const master_key = yield* ring.masterKeyId
    assert.deepStrictEqual(keys, [{ number: 1, master_key }, { number: 2, master_key }])
    // The old master key is needed no more.
    const after = yield* nodeWith(url, next)
    assert.deepStrictEqual(yield* reads(read, after), expected)
    assert.isTrue(yield* Effect.provide(MeshStore.use((store) => store.remove(projectId, networkKey)), after))
    assert.strictEqual((yield* Effect.flip(nodeWith(url, old)))._tag, "KeyRingError")
  }).pipe(Effect.scoped))

it.live("servers that start at once on a new database agree on one data key", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const storage = StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))
    const nodes = yield* Effect.forEach([1, 2, 3], () => Layer.build(Layer.fresh(storage)), {
      concurrency: "unbounded"
    })
    for (const node of nodes) {
      const { expected, read } = yield* Effect.provide(storeSecrets, node)
      for (const other of nodes) assert.deepStrictEqual(yield* reads(read, other), expected)
    }
    assert.lengthOf(yield* run(url, `SELECT number FROM data_key`), 1)
  }).pipe(Effect.scoped))

it.live("a server that lacks the new master key neither replaces a secret that it cannot open nor hands it out", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const [old, next] = [newKey(), newKey()]
    const lacking = yield* nodeWith(url, old)
    const { device, expected, projectId, read } = yield* Effect.provide(storeSecrets, lacking)
    const rotated = yield* nodeWith(url, next, old)
    yield* areSealedUnder(url, 2)
    const rotation = { secret: "new", previousUntil: at + 60_000, at }
    const { batchId } = expected.devices.find(({ device }) => device.batchId > 0)!.device
    const attempts = Effect.all([
      Effect.flip(DeviceStore.use((store) => store.rotateSecret(projectId, device.deviceId, rotation))),
      Effect.flip(ProductStore.use((store) => store.rotateSecret(projectId, device.productKey, rotation))),
      Effect.flip(
        DeviceStore.use((store) => store.claimByName(device.productKey, DeviceName.make("registered"), undefined))
      ),
      Effect.flip(
        DeviceStore.use((store) => store.devicesOfBatch(projectId, batchId, { after: undefined, limit: 100 }))
      )
    ])
    const errors = yield* Effect.provide(attempts, lacking)
    assert.deepStrictEqual(errors.map(({ operation, retryable }) => ({ operation, retryable })), [
      { operation: "DeviceStore.rotateSecret", retryable: true },
      { operation: "ProductStore.rotateSecret", retryable: true },
      { operation: "DeviceStore.claimByName", retryable: true },
      { operation: "DeviceStore.devicesOfBatch", retryable: true }
    ])
    assert.deepStrictEqual(yield* reads(read, rotated), expected)
  }).pipe(Effect.scoped))

it.live("a key ring that does not answer keeps no other server from its start", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const key = newKey()
    const asked = yield* Deferred.make<void>()
    const hanging = Layer.effect(
      KeyRing,
      Effect.map(KeyRing, (ring) => ({
        ...ring,
        generate: Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
      }))
    ).pipe(Layer.provide(NodeKeyRing.layerKeys(Redacted.make(key))))
    yield* Effect.forkScoped(Layer.build(Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(hanging)))))
    yield* Deferred.await(asked)
    const { expected, read } = yield* Effect.provide(storeSecrets, yield* nodeWith(url, key))
    assert.deepStrictEqual(yield* reads(read, yield* nodeWith(url, key)), expected)
  }).pipe(Effect.scoped))

it.live("a row that does not open is left as it is, and its neighbours are sealed", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const [old, next] = [newKey(), newKey()]
    const scope = yield* Scope.make()
    const { device } = yield* Effect.provide(storeSecrets, yield* Scope.provide(nodeWith(url, old), scope))
    yield* Scope.close(scope, Exit.void)
    yield* run(url, `UPDATE device SET device_secret = 'damaged' WHERE device_id = '${device.deviceId}'`)
    yield* nodeWith(url, next, old)
    yield* eventually(
      run<{ readonly device_secret: string }>(url, `SELECT device_secret FROM device WHERE sealed_with < 2`),
      { until: (rows) => rows.length === 1 && rows[0]!.device_secret === "damaged" }
    )
  }).pipe(Effect.scoped))

it.live("a data key opens after a start in which the ring replaced its master key", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const [first, second, third] = [newKey(), newKey(), newKey()]
    const ringOf = (...keys: ReadonlyArray<string>) =>
      Effect.provide(Effect.service(KeyRing), Layer.fresh(NodeKeyRing.layerKeys(Redacted.make(keys.join(",")))))
    const scope = yield* Scope.make()
    const { expected, read } = yield* Effect.provide(storeSecrets, yield* Scope.provide(nodeWith(url, first), scope))
    yield* Scope.close(scope, Exit.void)
    const { masterKeyId } = yield* ringOf(second)
    const replaced = Layer.succeed(KeyRing, { ...yield* ringOf(third, first), masterKeyId })
    yield* Effect.scoped(Layer.build(Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(replaced)))))
    assert.deepStrictEqual(yield* reads(read, yield* nodeWith(url, third)), expected)
  }).pipe(Effect.scoped))

it.live("secrets go on being sealed after a key ring that dies", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const [old, next] = [newKey(), newKey()]
    const clock = Clock.Clock.defaultValue()
    const hasty = Object.assign(Object.create(clock) as Clock.Clock, {
      sleep: (time: Duration.Duration) => clock.sleep(Duration.toMinutes(time) === 1 ? Duration.millis(10) : time)
    })
    let isToDie = false
    const dying = Layer.effect(
      KeyRing,
      Effect.map(KeyRing, (ring) => ({
        ...ring,
        open: (sealed: SealedDataKey) =>
          Effect.suspend(() => {
            if (!isToDie) return ring.open(sealed)
            isToDie = false
            throw new Error("The ring dies")
          })
      }))
    ).pipe(Layer.provide(NodeKeyRing.layerKeys(Redacted.make([old, next].join(",")))))
    const running = yield* Layer.build(
      Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(dying), Layer.provide(Layer.succeed(Clock.Clock, hasty))))
    )
    const { device } = yield* Effect.provide(storeSecrets, running)
    isToDie = true
    const scope = yield* Scope.make()
    yield* Scope.provide(nodeWith(url, next, old), scope)
    yield* areSealedUnder(url, 2)
    yield* Scope.close(scope, Exit.void)
    yield* eventually(Effect.sync(() => isToDie), { until: (it) => !it })
    // A row that an older data key seals, as a server leaves it that has not heard of the newest one.
    yield* run(url, `UPDATE device SET sealed_with = 0, device_secret = 'plain' WHERE device_id = '${device.deviceId}'`)
    yield* areSealedUnder(url, 2)
  }).pipe(Effect.scoped))
