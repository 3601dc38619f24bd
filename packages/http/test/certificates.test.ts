import { X509 } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import { FactoryAuthority } from "@device-cloud/testing"
import {
  call,
  type CallOptions,
  createDevice,
  createProduct,
  type DeviceTriple,
  signedQuery,
  testApi
} from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createPrivateKey, X509Certificate } from "node:crypto"
import { storages } from "../../../vitest.storages.ts"

const { certificate: authority, emptyList, former, listWithOne, one, privateKey: authorityKey, request, server, two } =
  FactoryAuthority

/** A device of a new product whose devices have certificates. */
const newDevice = Effect.gen(function*() {
  const { product_key } = yield* createProduct({ auth_type: "certificate" })
  return (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
})

const add = ({ device_id }: { readonly device_id: string }, body?: unknown, options: CallOptions = {}) =>
  call("POST", `/things/${device_id}/certificates`, { body, ...options })

const list = ({ device_id }: { readonly device_id: string }) =>
  Effect.map(call("GET", `/things/${device_id}/certificates`), ({ body }) => body.data.results)

/** Registers the authority of the factory in a project. */
const register = (options: CallOptions = {}) =>
  call("POST", "/certificate-authorities", { ...options, body: { name: "Factory", certificate: authority } })

/** A certificate of the factory with this common name. */
const issueFor = (commonName: string) =>
  Effect.gen(function*() {
    const x509 = yield* X509
    const { publicKey } = yield* x509.makeKey
    const validity = { notBefore: Date.UTC(2020, 0), notAfter: Date.UTC(2100, 0) }
    return yield* x509.issue(publicKey, { commonName, ...validity }, {
      certificate: authority,
      privateKey: authorityKey
    })
  })

const newKey = (body: object) =>
  Effect.map(call("POST", "/access-keys", { body: { name: "test", ...body } }), ({ body }) => body.data.key as string)

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`client certificates on ${name}`, (it) => {
    it.effect("issues a certificate with a key that is told once, and lists it without", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { body: { data } } = yield* add(device, { valid_days: 30 })
        const leaf = new X509Certificate(data.certificate)
        assert.isTrue(leaf.verify(new X509Certificate(data.authority).publicKey))
        assert.isTrue(leaf.checkPrivateKey(createPrivateKey(data.private_key)))
        assert.strictEqual(leaf.subject, `CN=${device.product_key}/${device.device_name}`)
        const days = (Date.parse(data.not_after) - Date.parse(data.created_at)) / 86_400_000
        assert.approximately(days, 30, 0.001)
        const { authority: _, private_key: __, ...info } = data
        assert.deepInclude(info, { status: "active", revoked_at: "", valid_until: data.not_after })
        const viewer = yield* newKey({ role: "viewer" })
        const seen = yield* call("GET", `/things/${device.device_id}/certificates`, { key: viewer })
        assert.deepStrictEqual(seen.body.data, { results: [info] })
        assert.notInclude(seen.text, "PRIVATE KEY")
        // The authority of the project is there once.
        yield* add(device)
        const { body } = yield* call("GET", "/certificate-authorities", { key: viewer })
        const own = body.data.results.filter(({ kind }: { readonly kind: string }) => kind === "own")
        assert.lengthOf(own, 1)
        assert.deepInclude(own[0], { authority_id: data.authority_id, state: "active", certificate: data.authority })
        assert.notInclude(JSON.stringify(body), "PRIVATE KEY")
      }))

    it.effect("repeats a response with its key to the same Idempotency-Key, and issues one certificate", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const headers = { "idempotency-key": device.device_id }
        const [first, second] = [
          yield* add(device, { valid_days: 1 }, { headers }),
          yield* add(device, { valid_days: 1 }, { headers })
        ]
        assert.include(first.text, "PRIVATE KEY")
        assert.strictEqual(second.text, first.text)
        assert.lengthOf(yield* list(device), 1)
      }))

    it.effect("revokes for good, and says what does not exist", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { body: { data: { serial } } } = yield* add(device)
        const path = `/things/${device.device_id}/certificates/${serial.toUpperCase()}`
        for (let i = 0; i < 2; i++) assert.strictEqual((yield* call("DELETE", path)).body.code, 0)
        const [revoked] = yield* list(device)
        assert.strictEqual(revoked.status, "revoked")
        assert.isAbove(Date.parse(revoked.revoked_at), 0)
        for (
          const missing of [`/things/${device.device_id}/certificates/ff`, `/things/missing/certificates/${serial}`]
        ) {
          const { body, status } = yield* call("DELETE", missing)
          assert.deepStrictEqual([status, body.code], [404, missing.includes("missing") ? 40402 : 40414])
        }
      }))

    it.effect("an overlap says until when the earlier certificates count", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        yield* add(device)
        yield* add(device, { overlap: 3600 })
        const [latest, earlier] = yield* list(device)
        assert.strictEqual(latest.valid_until, latest.not_after)
        assert.approximately(Date.parse(earlier.valid_until), Date.parse(latest.created_at) + 3_600_000, 1)
        assert.deepStrictEqual([latest.status, earlier.status], ["active", "active"])
        yield* add(device, { overlap: 0 })
        const statuses = (yield* list(device)).map(({ status }: { readonly status: string }) => status)
        assert.deepStrictEqual(statuses, ["active", "expired", "expired"])
      }))

    it.effect("names the field that does not fit, and stores nothing", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const misfits: ReadonlyArray<readonly [object, string]> = [
          [{ csr: "x" }, "csr"],
          [{ csr: one.certificate }, "csr"],
          [{ csr: 1 }, "csr"],
          [{ csr: "x".repeat(17_000) }, "csr"],
          [{ certificate: "x" }, "certificate"],
          [{ certificate: authority }, "certificate"],
          [{ certificate: server }, "certificate"],
          [{ csr: request, certificate: one.certificate }, "csr"],
          [{ certificate: one.certificate, valid_days: 3 }, "valid_days"],
          [{ valid_days: 0 }, "valid_days"],
          [{ valid_days: 3651 }, "valid_days"],
          [{ valid_days: "1" }, "valid_days"],
          [{ overlap: -1 }, "overlap"],
          [{ overlap: 604_801 }, "overlap"]
        ]
        for (const [body, field] of misfits) {
          const { body: refused } = yield* add(device, body)
          assert.deepStrictEqual([refused.code, Object.keys(refused.data.issues)], [40001, [field]], refused.message)
        }
        assert.deepStrictEqual(yield* list(device), [])
      }))

    it.effect("only products with auth_type certificate have certificates, and no sub-devices", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { body } = yield* add(yield* createDevice(product_key))
        assert.strictEqual(body.code, 40004)
        const subDevices = yield* call("POST", "/products", {
          body: {
            name: "Bulb",
            node_type: "gateway-sub",
            protocol_type: "zigbee",
            validate_type: "none",
            data_format: "json",
            auth_type: "certificate"
          }
        })
        assert.deepStrictEqual(Object.keys(subDevices.body.data.issues), ["auth_type"])
        const product = yield* createProduct({ auth_type: "certificate" })
        assert.strictEqual(product["auth_type"], "certificate")
        const device = yield* createDevice(product.product_key)
        const detail = yield* call("GET", `/things/${device.device_id}/detail`)
        assert.strictEqual(detail.body.data.device_info.auth_type, "certificate")
      }))

    it.effect("an authority counts once the project has shown that it has the key", () =>
      Effect.gen(function*() {
        const { body: { data: pending } } = yield* register()
        assert.deepInclude(pending, { kind: "registered", state: "pending", name: "Factory", crl: null })
        assert.match(pending.verification_code, /^[0-9a-f]{32}$/)
        const device = yield* newDevice
        const early = yield* add(device, { certificate: one.certificate })
        assert.deepStrictEqual([early.body.code, Object.keys(early.body.data.issues)], [40001, ["certificate"]])
        const path = `/certificate-authorities/${pending.authority_id}/verification`
        const verify = (certificate: string) => call("PUT", path, { body: { certificate } })
        const x509 = yield* X509
        const validity = { notBefore: Date.UTC(2020, 0), notAfter: Date.UTC(2100, 0) }
        const forger = yield* x509.makeAuthority({ commonName: "Factory", ...validity })
        const { publicKey } = yield* x509.makeKey
        const forged = yield* x509.issue(publicKey, { commonName: pending.verification_code, ...validity }, forger)
        for (const wrong of ["x", one.certificate, forged]) {
          const { body } = yield* verify(wrong)
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["certificate"]])
        }
        const proof = yield* issueFor(pending.verification_code)
        for (let i = 0; i < 2; i++) assert.deepInclude((yield* verify(proof)).body.data, { state: "active" })
        const added = (yield* add(device, { certificate: one.certificate })).body.data
        assert.deepInclude(added, { serial: one.serial, subject: "CN=unit-one", authority_id: pending.authority_id })
        assert.notProperty(added, "private_key")
        // It has one device, also after it is revoked.
        assert.strictEqual((yield* add(yield* newDevice, { certificate: one.certificate })).body.code, 40901)
        yield* call("DELETE", `/things/${device.device_id}/certificates/${one.serial}`)
        assert.strictEqual((yield* add(device, { certificate: one.certificate })).body.code, 40901)
        yield* call("DELETE", `/certificate-authorities/${pending.authority_id}`)
      }))

    it.effect("a certificate counts as long as the authority that was renewed with its key", () =>
      Effect.gen(function*() {
        const [earlier, renewed] = yield* Effect.forEach([former, authority], (certificate) =>
          Effect.gen(function*() {
            const { body } = yield* call("POST", "/certificate-authorities", { body: { name: "Factory", certificate } })
            const { authority_id, verification_code } = body.data
            const proof = { certificate: yield* issueFor(verification_code) }
            yield* call("PUT", `/certificate-authorities/${authority_id}/verification`, { body: proof })
            return authority_id
          }))
        const { body: { data } } = yield* add(yield* newDevice, { certificate: one.certificate })
        assert.deepInclude(data, { authority_id: renewed, valid_until: data.not_after })
        for (const each of [earlier, renewed]) yield* call("DELETE", `/certificate-authorities/${each}`)
      }))

    it.effect("refuses what is no authority, and the same one twice", () =>
      Effect.gen(function*() {
        for (const body of [{ name: "x" }, { name: " ", certificate: authority }, { name: "x", certificate: "x" }]) {
          assert.strictEqual((yield* call("POST", "/certificate-authorities", { body })).body.code, 40001)
        }
        const leaf = yield* call("POST", "/certificate-authorities", {
          body: { name: "x", certificate: two.certificate }
        })
        assert.include(leaf.body.message, "certificate: Expected the certificate of an authority")
        const { body } = yield* register()
        assert.strictEqual((yield* register()).body.code, 40901)
        yield* call("DELETE", `/certificate-authorities/${body.data.authority_id}`)
      }))

    it.effect("a revocation list replaces the one before, unless it is older or of another authority", () =>
      Effect.gen(function*() {
        const { body: { data: { authority_id } } } = yield* register()
        const put = (crl: unknown) => call("PUT", `/certificate-authorities/${authority_id}/crl`, { body: { crl } })
        assert.deepInclude((yield* put(listWithOne)).body.data.crl, { size: 1 })
        for (const wrong of [emptyList, "x", 1, authority, listWithOne.replace(/\n.{30}/, "\n")]) {
          const { body } = yield* put(wrong)
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["crl"]])
        }
        assert.deepInclude((yield* put(listWithOne)).body.data.crl, { size: 1 })
        assert.strictEqual((yield* call("DELETE", `/certificate-authorities/${authority_id}`)).body.code, 0)
        assert.strictEqual((yield* put(listWithOne)).body.code, 40414)
        assert.strictEqual((yield* call("DELETE", `/certificate-authorities/${authority_id}`)).body.code, 40414)
      }))

    it.effect("each project has its own authorities, and keys limited to products see those of no one", () =>
      Effect.gen(function*() {
        const { body: { data: { authority_id } } } = yield* register()
        const { body: { data: { id } } } = yield* call("POST", "/projects", { body: { name: "Other" } })
        const foreign = yield* newKey({ role: "admin", project_id: id })
        const { body } = yield* call("GET", "/certificate-authorities", { key: foreign })
        assert.deepStrictEqual(body.data, { results: [] })
        assert.strictEqual((yield* register({ key: foreign })).body.code, 0)
        const { product_key } = yield* createProduct({ auth_type: "certificate" })
        const device = yield* createDevice(product_key)
        const key = yield* newKey({ role: "operator", scopes: { products: [product_key] } })
        assert.strictEqual((yield* add(device, {}, { key })).body.code, 0)
        assert.strictEqual((yield* add(yield* newDevice, {}, { key })).body.code, 40300)
        for (const method of ["GET", "POST"]) {
          const refused = yield* call(method, "/certificate-authorities", {
            key,
            body: method === "GET" ? undefined : { name: "x", certificate: authority }
          })
          assert.strictEqual(refused.body.code, 40300)
        }
        yield* call("DELETE", `/certificate-authorities/${authority_id}`)
      }))

    it.effect("the audit log tells who issued and who revoked", () =>
      Effect.gen(function*() {
        const { body: { data: { id } } } = yield* call("POST", "/projects", { body: { name: "Audited" } })
        const key = yield* newKey({ role: "admin", project_id: id })
        const { product_key } = yield* createProduct({ auth_type: "certificate" }, { key })
        const device = (yield* call("POST", `/products/${product_key}/things`, { key })).body.data
        const { body: { data: { serial } } } = yield* add(device, {}, { key })
        yield* call("DELETE", `/things/${device.device_id}/certificates/${serial}`, { key })
        const { body } = yield* call("GET", "/audit?limit=10", { key })
        const told = body.data.results.map((entry: Readonly<Record<string, unknown>>) => entry["action"])
        assert.includeMembers(told, ["certificates.addCertificate", "certificates.revokeCertificate"])
      }))

    it.effect("a certificate takes the place of the signature of the HTTP uplink", () =>
      Effect.gen(function*() {
        const handle = yield* ManagementApi.fetchHandler({ readiness: {} })
        const device = yield* newDevice
        const { body: { data: { certificate, serial } } } = yield* add(device)
        const { raw } = new X509Certificate(certificate)
        const { device_name, product_key } = device
        const post = (query: Readonly<Record<string, string>>, certificate?: Uint8Array) =>
          Effect.promise(async () => {
            const all = new URLSearchParams({ device_name, product_key, action: "PostProperty", ...query })
            const request = new Request(`https://cloud.example.com/openapi/v1/thing-uplink?${all.toString()}`, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: JSON.stringify({ params: { power: 1 } })
            })
            const response = await handle(request, {
              address: "192.0.2.1",
              secure: true,
              ...certificate === undefined ? {} : { certificate }
            })
            // oxlint-disable-next-line typescript/no-explicit-any -- a test looks into whatever came back
            return await response.json() as any
          })
        assert.strictEqual((yield* post({}, raw)).code, 0)
        const detail = yield* call("GET", `/things/${device.device_id}/detail`)
        assert.strictEqual(detail.body.data.device_info.status, "online")
        // Of another device; of nobody.
        const other = yield* newDevice
        const named = { device_name: other.device_name, product_key: other.product_key }
        assert.deepInclude(yield* post(named, raw), {
          code: 40110,
          message: "the certificate belongs to another device"
        })
        const unknown = yield* post({}, new X509Certificate(two.certificate).raw)
        assert.deepStrictEqual(Object.keys(unknown.data.issues), ["random", "sign", "sign_method"])
        // A right signature is not enough.
        const { code, message } = yield* post(yield* signedQuery(device, "PostProperty"))
        assert.strictEqual(code, 40110)
        assert.include(message, "needs its client certificate")
        yield* call("DELETE", `/things/${device.device_id}/certificates/${serial}`)
        assert.deepInclude(yield* post({}, raw), { code: 40110, message: "the certificate is revoked" })
      }))
  })
}
