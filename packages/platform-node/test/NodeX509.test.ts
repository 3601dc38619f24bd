import { X509 } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { FactoryAuthority } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto"
import { request as requestOf } from "./CertificateRequest.ts"

const start = Date.UTC(2026, 0, 1)
const day = 86_400_000
const validity = { notBefore: start, notAfter: start + 365 * day }

layer(PlatformNode.layer)("NodeX509", (it) => {
  it.effect("issues certificates that Node.js verifies: of an authority, and for clients", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      const authority = yield* x509.makeAuthority({
        commonName: "Cloud",
        notBefore: start,
        notAfter: start + 9000 * day
      })
      const { privateKey, publicKey } = yield* x509.makeKey
      const certificate = yield* x509.issue(publicKey, { commonName: "product/déjà vu", ...validity }, authority)
      const [root, leaf] = [new X509Certificate(authority.certificate), new X509Certificate(certificate)]
      assert.isTrue(root.ca && root.checkIssued(root) && root.verify(root.publicKey))
      assert.isTrue(root.checkPrivateKey(createPrivateKey(authority.privateKey)))
      assert.isTrue(!leaf.ca && leaf.checkIssued(root) && leaf.verify(root.publicKey))
      assert.isTrue(leaf.checkPrivateKey(createPrivateKey(privateKey)))
      assert.deepStrictEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.2"])
      assert.match(leaf.serialNumber, /^[4-7][0-9A-F]{31}$/)
      const read = Result.getOrThrow(x509.read(certificate))
      assert.deepInclude(read, { commonName: "product/déjà vu", isAuthority: false, isForClients: true, ...validity })
      // After 2049, dates are written in another way.
      assert.strictEqual(Result.getOrThrow(x509.read(authority.certificate)).notAfter, start + 9000 * day)
      assert.isTrue(x509.isIssuedBy(certificate, authority.certificate))
      const other = yield* x509.makeAuthority({ commonName: "Cloud", ...validity })
      assert.isFalse(x509.isIssuedBy(certificate, other.certificate))
    }))

  it.effect("reads what OpenSSL has made", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      const { certificate, one, request, server, two } = FactoryAuthority
      for (const { certificate: pem, serial } of [one, two]) {
        assert.deepInclude(Result.getOrThrow(x509.read(pem)), { serial, isAuthority: false, isForClients: true })
        assert.isTrue(x509.isIssuedBy(pem, certificate))
      }
      assert.deepInclude(Result.getOrThrow(x509.read(certificate)), { commonName: "Factory", isAuthority: true })
      assert.isFalse(Result.getOrThrow(x509.read(server)).isForClients)
      const publicKey = Result.getOrThrow(x509.readRequest(request))
      assert.isTrue(
        publicKey === new X509Certificate(two.certificate).publicKey.export({ type: "spki", format: "pem" })
      )
    }))

  it.effect("reads requests with each kind of key that it accepts, and no others", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      for (
        const [pair, isAccepted] of [
          [generateKeyPairSync("ec", { namedCurve: "P-256" }), true],
          [generateKeyPairSync("ec", { namedCurve: "P-384" }), true],
          [generateKeyPairSync("ed25519"), true],
          [generateKeyPairSync("rsa", { modulusLength: 2048 }), true],
          [generateKeyPairSync("rsa", { modulusLength: 1024 }), false],
          [generateKeyPairSync("ec", { namedCurve: "secp256k1" }), false]
        ] as const
      ) {
        const read = x509.readRequest(requestOf(pair))
        const expected = pair.publicKey.export({ type: "spki", format: "pem" }).toString()
        if (isAccepted) assert.strictEqual(Result.getOrThrow(read), expected)
        else assert.match(Result.getOrThrow(Result.flip(read)), /^Expected a request with another key: RSA of 2048/)
      }
    }))

  it.effect("refuses requests that are not signed with their own key, and what is none", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      const [mine, other] = [
        generateKeyPairSync("ec", { namedCurve: "P-256" }),
        generateKeyPairSync("ec", { namedCurve: "P-256" })
      ]
      const stolen = requestOf({ publicKey: mine.publicKey, privateKey: other.privateKey })
      assert.match(Result.getOrThrow(Result.flip(x509.readRequest(stolen))), /signed with its own key/)
      const { certificate, request } = FactoryAuthority
      for (const misfit of ["", "x", certificate, request + request, request.replace(/\n.{30}/, "\n"), pemOf("AAAA")]) {
        assert.isTrue(Result.isFailure(x509.readRequest(misfit)), misfit)
      }
    }))

  it.effect("reads revocation lists of their authority, and no others", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      const { certificate, emptyList, listWithOne, one } = FactoryAuthority
      const empty = Result.getOrThrow(x509.readRevocationList(emptyList, certificate))
      const later = Result.getOrThrow(x509.readRevocationList(listWithOne, certificate))
      assert.deepStrictEqual(empty.revoked, [])
      assert.deepStrictEqual(later.revoked.map(({ serial }) => serial), [one.serial])
      assert.isTrue(later.issuedAt > empty.issuedAt && later.nextAt! > later.issuedAt)
      const other = yield* x509.makeAuthority({ commonName: "Factory", ...validity })
      for (
        const [list, authority] of [[listWithOne, other.certificate], ["x", certificate], [certificate, certificate]]
      ) {
        assert.isTrue(Result.isFailure(x509.readRevocationList(list!, authority!)))
      }
    }))

  it.effect("finds serial numbers of zero and below on revocation lists", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      const { revoked } = Result.getOrThrow(x509.readRevocationList(listOfOdd, FactoryAuthority.certificate))
      assert.deepStrictEqual(
        revoked.map(({ serial }) => serial),
        [serialZero, serialBelowZero].map((pem) => Result.getOrThrow(x509.read(pem)).serial)
      )
    }))

  it.effect("refuses revocation lists that are no whole ones", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      assert.strictEqual(
        Result.getOrThrow(Result.flip(x509.readRevocationList(partialList, FactoryAuthority.certificate))),
        "Expected a whole revocation list of one authority, without critical extensions"
      )
    }))

  it.effect("refuses what is not exactly one certificate", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      const { certificate, one } = FactoryAuthority
      for (
        const misfit of ["", "x", one.privateKey, certificate + one.certificate, certificate.replace(/\n.{30}/, "\n")]
      ) {
        assert.strictEqual(Result.getOrThrow(Result.flip(x509.read(misfit))), "Expected one certificate in PEM")
      }
      assert.isFalse(x509.isIssuedBy("x", certificate))
    }))

  // A search that begins anew at each blank takes minutes.
  it.effect("refuses long blocks without an end soon", () =>
    Effect.gen(function*() {
      const x509 = yield* X509
      const open = (label: string, base64: string) => `-----BEGIN ${label}-----${base64.repeat(500_000)}`
      for (const base64 of [" ", "\n", "A", "A\n", " -----"]) {
        const refused: ReadonlyArray<Result.Result<unknown, string>> = [
          x509.read(open("CERTIFICATE", base64)),
          x509.readRequest(open("CERTIFICATE REQUEST", base64)),
          x509.readRevocationList(open("X509 CRL", base64), FactoryAuthority.certificate)
        ]
        assert.isTrue(refused.every(Result.isFailure))
      }
    }))
})

const pemOf = (base64: string) => `-----BEGIN CERTIFICATE REQUEST-----\n${base64}\n-----END CERTIFICATE REQUEST-----\n`

/** A certificate of the factory with serial number 0. */
const serialZero = `-----BEGIN CERTIFICATE-----
MIIBXzCCAQWgAwIBAgIBADAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAdGYWN0b3J5
MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQDDAR1
bml0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEWlT6EpsF4LvJWl5Xo13vbxir
TiLlr4VzOpdqhCqo8JAK8hjSDiHMkmHTnd0DCFfbtsjODrWH3DTxNaptyWpRHaNN
MEswCQYDVR0TBAIwADAdBgNVHQ4EFgQU9S9OlJ7gIitnSru7fm3l9yo/UhowHwYD
VR0jBBgwFoAUVYkGs/uCCxsAqNJuu4a2POkG1BQwCgYIKoZIzj0EAwIDSAAwRQIg
C3HOzKMV6XjkZLyB4Zg6LiTBEFkiOtvJOP7wrwwJxd8CIQC9IMsVobPAgMZA4BjC
r8a9uniXECByvD9BPyt2uD4hGw==
-----END CERTIFICATE-----
`

/** One with serial number -129. */
const serialBelowZero = `-----BEGIN CERTIFICATE-----
MIIBYDCCAQagAwIBAgIC/38wCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHRmFjdG9y
eTAgFw0yNjExMjQwMjI0MDNaGA8yMTA5MDExMzAyMjQwM1owDzENMAsGA1UEAwwE
dW5pdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFpU+hKbBeC7yVpeV6Nd728Y
q04i5a+FczqXaoQqqPCQCvIY0g4hzJJh053dAwhX27bIzg61h9w08TWqbclqUR2j
TTBLMAkGA1UdEwQCMAAwHQYDVR0OBBYEFPUvTpSe4CIrZ0q7u35t5fcqP1IaMB8G
A1UdIwQYMBaAFFWJBrP7ggsbAKjSbruGtjzpBtQUMAoGCCqGSM49BAMCA0gAMEUC
IA0Wu9oe1AbiWkxEpc4l2NVcP5hJ6spLZnsebzUvvtDaAiEA0zuwy8VdV5U6BPab
aoiZYKcYK6xomarimnWBIVL79TY=
-----END CERTIFICATE-----
`

/** A revocation list of the factory with both. */
const listOfOdd = `-----BEGIN X509 CRL-----
MIHDMGswCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHRmFjdG9yeRcNMjUwMTAxMDAw
MDAwWhgPMjEyMDAxMDEwMDAwMDBaMCkwEgIBABcNMjUwMTAxMDAwMDAwWjATAgL/
fxcNMjUwMTAxMDAwMDAwWjAKBggqhkjOPQQDAgNIADBFAiEA9jtefvE+Z+8VbzhJ
eGaTbEqhYPXHSEuJB0L47buCHZgCIAqXbIPjOcICzfGwxkIQQUPgp/NpgCVuV3so
u1HFUIws
-----END X509 CRL-----
`

/** One of a distribution point (RFC 5280, 5.2.5) of the factory. */
const partialList = `-----BEGIN X509 CRL-----
MIHZMIGAAgEBMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMMB0ZhY3RvcnkXDTI2MTEy
NDA2MDI0N1oYDzIxMDkwMTEzMDYwMjQ3WqA7MDkwKwYDVR0cAQH/BCEwH6AaoBiG
Fmh0dHA6Ly9leGFtcGxlLmNvbS9jcmyBAf8wCgYDVR0UBAMCAQEwCgYIKoZIzj0E
AwIDSAAwRQIgB12VdG/JFsCZtu5A152kLIfW0hdmhIYuw3g9LKMB9f0CIQDIY/7R
xMpBch7Mas+PRpGHW0AmQ9EEOe6TxT0ITyXU7w==
-----END X509 CRL-----
`
