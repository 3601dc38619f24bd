/**
 * X.509 certificates with `node:crypto`. Node.js reads and verifies certificates;
 * it does not write them, nor read requests and revocation lists.
 */
import {
  type CertificateWithKey,
  type Issue,
  type ReadCertificate,
  type ReadRevocationList,
  X509
} from "@device-cloud/core"
import { Effect, Layer, Result } from "effect"
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  verify,
  X509Certificate
} from "node:crypto"
import { promisify } from "node:util"
import {
  bitsOf,
  contentOf,
  contextTag,
  type Der,
  inside,
  isTime,
  readAll,
  sequence,
  Tag,
  timeOf,
  write,
  writeBits,
  writeOid,
  writeTime
} from "./Der.ts"

const oids = {
  commonName: "2.5.4.3",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  basicConstraints: "2.5.29.19",
  deltaList: "2.5.29.27",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  clientAuthentication: "1.3.6.1.5.5.7.3.2",
  anyUsage: "2.5.29.37.0",
  ecdsaWithSha256: "1.2.840.10045.4.3.2"
} as const

/** The digest of each signature algorithm that is accepted; null: the algorithm has its own. */
const digests: ReadonlyArray<readonly [oid: Buffer, digest: string | null]> = [
  [writeOid("1.2.840.113549.1.1.11"), "sha256"],
  [writeOid("1.2.840.113549.1.1.12"), "sha384"],
  [writeOid("1.2.840.113549.1.1.13"), "sha512"],
  [writeOid(oids.ecdsaWithSha256), "sha256"],
  [writeOid("1.2.840.10045.4.3.3"), "sha384"],
  [writeOid("1.2.840.10045.4.3.4"), "sha512"],
  [writeOid("1.3.101.112"), null]
]

const curves = new Set(["prime256v1", "secp384r1", "secp521r1"])

const isAccepted = ({ asymmetricKeyDetails, asymmetricKeyType }: KeyObject): boolean => {
  switch (asymmetricKeyType) {
    case "rsa":
      return (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048
    case "ec":
      return curves.has(asymmetricKeyDetails?.namedCurve ?? "")
    default:
      return asymmetricKeyType === "ed25519"
  }
}

const keysExpected = "RSA of 2048 bits or more, the curves P-256, P-384, P-521, or Ed25519"

/** Runs what throws on input that does not fit. */
const attempt = <A>(expected: string, run: () => A): Result.Result<A, string> =>
  Result.try({ try: run, catch: () => `Expected ${expected}` })

/** The bytes of text in PEM that has exactly one block. */
const bytesOfPem = (pem: string, label: string): Buffer => {
  const [, base64] =
    new RegExp(`^\\s*-----BEGIN ${label}-----\\s([A-Za-z0-9+/=\\s]+)-----END ${label}-----\\s*$`).exec(pem) ?? []
  if (base64 === undefined) throw new Error("no such block")
  return Buffer.from(base64, "base64")
}

const read = (pem: string): Result.Result<ReadCertificate, string> =>
  Result.flatMap(
    attempt("one certificate in PEM", () => {
      const certificate = new X509Certificate(bytesOfPem(pem, "CERTIFICATE"))
      return { certificate, serial: serialOf(partsOf(certificate)[0]) }
    }),
    ({ certificate, serial }) => {
      const usages = certificate.keyUsage as ReadonlyArray<string> | undefined
      const lines = certificate.subject?.split("\n") ?? []
      const [notBefore, notAfter] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
      if (Number.isNaN(notBefore) || Number.isNaN(notAfter)) return Result.fail("Expected a certificate with dates")
      // A key that Node.js does not know throws.
      const isKeyAccepted = Result.getOrElse(
        attempt(keysExpected, () => isAccepted(certificate.publicKey)),
        () => false
      )
      if (!isKeyAccepted) return Result.fail(`Expected a certificate with another key: ${keysExpected}`)
      return Result.succeed({
        pem: certificate.toString(),
        fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
        serial,
        subject: lines.join(", "),
        commonName: lines.find((line) => line.startsWith("CN="))?.slice(3),
        isAuthority: certificate.ca,
        isForClients: usages === undefined || usages.includes(oids.clientAuthentication) ||
          usages.includes(oids.anyUsage),
        notBefore,
        notAfter
      })
    }
  )

const isIssuedBy = (certificate: string, authority: string): boolean =>
  Result.getOrElse(
    attempt("certificates", () => {
      const [leaf, issuer] = [new X509Certificate(certificate), new X509Certificate(authority)]
      return leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey)
    }),
    () => false
  )

/** Reads a structure of content, algorithm and signature, and whether `key` has signed it. */
const readSigned = (bytes: Buffer) => {
  const [root, ...rest] = readAll(bytes)
  const [content, algorithm, signature] = inside(root, Tag.sequence)
  if (content === undefined || rest.length > 0) throw new Error("Expected one structure")
  return {
    parts: inside(content, Tag.sequence),
    isSignedBy: (key: KeyObject): boolean => {
      const [oid] = inside(algorithm, Tag.sequence)
      const [, digest] = digests.find(([known]) => oid !== undefined && known.equals(oid.bytes)) ?? []
      return digest !== undefined && verify(digest, content.bytes, key, bitsOf(signature))
    }
  }
}

const readRequest = (pem: string): Result.Result<string, string> =>
  Result.flatMap(
    attempt("one certificate request (PKCS #10) in PEM", () => {
      const { isSignedBy, parts } = readSigned(bytesOfPem(pem, "(?:NEW )?CERTIFICATE REQUEST"))
      const key = createPublicKey({ key: publicKeyPart(parts[2]), format: "der", type: "spki" })
      return { key, isSigned: isSignedBy(key) }
    }),
    ({ isSigned, key }) => {
      if (!isAccepted(key)) return Result.fail(`Expected a request with another key: ${keysExpected}`)
      return isSigned
        ? Result.succeed(key.export({ type: "spki", format: "pem" }).toString())
        : Result.fail("Expected a request that is signed with its own key, with SHA-256 or better")
    }
  )

const publicKeyPart = (part: Der | undefined): Buffer => {
  inside(part, Tag.sequence)
  return part!.bytes
}

/** The parts of a certificate after its version, which is left out of those of version 1. */
const partsOf = (certificate: X509Certificate): ReadonlyArray<Der> => {
  const { parts } = readSigned(certificate.raw)
  return parts[0]?.tag === contextTag(0) ? parts.slice(1) : parts
}

/** A serial number, of a certificate and on a list: Node.js writes zero and numbers below it in another way. */
const serialOf = (integer: Der | undefined): string =>
  contentOf(integer, Tag.integer).toString("hex").replace(/^(?:00)+(?=..)/, "")

/** The subject of a certificate as it stands there. */
const subjectOf = (certificate: X509Certificate): Buffer => partsOf(certificate)[4]!.bytes

const readRevocationList = (pem: string, authority: string): Result.Result<ReadRevocationList, string> =>
  Result.flatMap(
    attempt("one revocation list (RFC 5280) in PEM", () => {
      const issuer = new X509Certificate(authority)
      const { isSignedBy, parts } = readSigned(bytesOfPem(pem, "X509 CRL"))
      const rest = parts[0]?.tag === Tag.integer ? parts.slice(1) : parts
      const [, name, issuedAt, ...more] = rest
      const isIssuers = name !== undefined && name.bytes.equals(subjectOf(issuer)) && isSignedBy(issuer.publicKey)
      if (!isTime(issuedAt)) throw new Error("no time")
      const nextAt = isTime(more[0]) ? timeOf(more[0]) : null
      const [list, extensions] = [Tag.sequence, contextTag(0)].map((tag) => more.find((part) => part.tag === tag))
      const entries = list === undefined ? [] : inside(list, Tag.sequence)
      return {
        isIssuers,
        // Those of the list, and of each entry behind its serial number and time.
        isWhole: [
          ...extensions === undefined ? [] : inside(extensions, contextTag(0)),
          ...entries.flatMap((entry) => inside(entry, Tag.sequence).slice(2))
        ].every(leavesWhole),
        list: { issuedAt: timeOf(issuedAt), nextAt, revoked: entries.map(revokedFrom) }
      }
    }),
    ({ isIssuers, isWhole, list }) => {
      if (!isIssuers) return Result.fail("Expected a revocation list that the authority has signed")
      return isWhole
        ? Result.succeed(list)
        : Result.fail("Expected a whole revocation list of one authority, without critical extensions")
    }
  )

/** A list with critical extensions has a part of the certificates, or also those of another authority. */
const leavesWhole = (extensions: Der): boolean =>
  inside(extensions, Tag.sequence).every((each) => {
    const [oid, critical] = inside(each, Tag.sequence)
    const isCritical = critical?.tag === Tag.boolean && critical.content[0] !== 0
    return !isCritical && oid?.bytes.equals(writeOid(oids.deltaList)) !== true
  })

const revokedFrom = (entry: Der) => {
  const [serial, at] = inside(entry, Tag.sequence)
  if (!isTime(at)) throw new Error("no time")
  return { serial: serialOf(serial), revokedAt: timeOf(at) }
}

const makeKey = Effect.promise(async () => {
  const { privateKey, publicKey } = await promisify(generateKeyPair)("ec", { namedCurve: "P-256" })
  return {
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
})

const extension = (oid: string, value: Uint8Array, isCritical = false): Buffer =>
  sequence(
    writeOid(oid),
    ...isCritical ? [write(Tag.boolean, Buffer.of(0xff))] : [],
    write(Tag.octetString, value)
  )

const nameOf = (commonName: string): Buffer =>
  sequence(write(Tag.set, sequence(writeOid(oids.commonName), write(Tag.utf8, Buffer.from(commonName)))))

/** Names a key as RFC 5280 (4.2.1.2) does: by the SHA-1 of its bits. */
const keyIdentifier = (publicKey: Buffer): Buffer =>
  createHash("sha1").update(bitsOf(inside(readAll(publicKey)[0], Tag.sequence)[1])).digest()

const derOf = (publicKey: KeyObject): Buffer => publicKey.export({ type: "spki", format: "der" })

interface Unsigned extends Issue {
  readonly issuer: Buffer
  readonly publicKey: Buffer
  readonly extensions: ReadonlyArray<Buffer>
}

/** Signs a certificate of version 3 with a key on the curve P-256. */
const signCertificate = (
  { commonName, extensions, issuer, notAfter, notBefore, publicKey }: Unsigned,
  key: KeyObject
): string => {
  const algorithm = sequence(writeOid(oids.ecdsaWithSha256))
  // Positive, and without leading zeros.
  const serial = randomBytes(16)
  serial[0] = (serial[0]! & 0x3f) | 0x40
  const content = sequence(
    write(contextTag(0), write(Tag.integer, Buffer.of(2))),
    write(Tag.integer, serial),
    algorithm,
    issuer,
    sequence(writeTime(notBefore), writeTime(notAfter)),
    nameOf(commonName),
    publicKey,
    write(
      contextTag(3),
      sequence(extension(oids.subjectKeyIdentifier, write(Tag.octetString, keyIdentifier(publicKey))), ...extensions)
    )
  )
  return new X509Certificate(sequence(content, algorithm, writeBits(sign("sha256", content, key)))).toString()
}

const makeAuthority = Effect.fnUntraced(function*(issue: Issue) {
  const keys = yield* makeKey
  const certificate = signCertificate({
    ...issue,
    issuer: nameOf(issue.commonName),
    publicKey: derOf(createPublicKey(keys.publicKey)),
    extensions: [
      extension(
        oids.basicConstraints,
        sequence(write(Tag.boolean, Buffer.of(0xff)), write(Tag.integer, Buffer.of(0))),
        true
      ),
      // keyCertSign and cRLSign.
      extension(oids.keyUsage, writeBits(Buffer.of(0x06), 1), true)
    ]
  }, createPrivateKey(keys.privateKey))
  return { certificate, privateKey: keys.privateKey }
})

const issue = (publicKey: string, what: Issue, { certificate, privateKey }: CertificateWithKey) =>
  Effect.sync(() => {
    const authority = new X509Certificate(certificate)
    return signCertificate({
      ...what,
      issuer: subjectOf(authority),
      publicKey: derOf(createPublicKey(publicKey)),
      extensions: [
        // A primitive element [0].
        extension(oids.authorityKeyIdentifier, sequence(write(0x80, keyIdentifier(derOf(authority.publicKey))))),
        extension(oids.basicConstraints, sequence(), true),
        // digitalSignature.
        extension(oids.keyUsage, writeBits(Buffer.of(0x80), 7), true),
        extension(oids.extendedKeyUsage, sequence(writeOid(oids.clientAuthentication)))
      ]
    }, createPrivateKey(privateKey))
  })

/** Implements the port with keys on the curve P-256. */
export const layer: Layer.Layer<X509> = Layer.succeed(
  X509,
  X509.of({ read, isIssuedBy, readRequest, readRevocationList, makeKey, makeAuthority, issue })
)
