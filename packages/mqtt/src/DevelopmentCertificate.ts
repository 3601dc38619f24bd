/**
 * A certificate authority and a server certificate for development, for `localhost`
 * and `127.0.0.1`, made once and kept in a directory. Both keys are on the curve P-256:
 * a handshake costs a fraction of one with RSA, and the keys are made at once.
 */
import { Clock, Effect, Schema } from "effect"
import { X509Certificate } from "node:crypto"
import { mkdir, readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"

/** The certificate of a TLS server. */
export interface ServerCertificate {
  /** The certificate, and those of intermediate authorities after it, as PEM. */
  readonly certificate: string
  /** The private key as PEM. */
  readonly key: string
}

/** A server certificate with the authority that has signed it. */
export interface DevelopmentCertificate extends ServerCertificate {
  /** The certificate of the authority as PEM; devices must trust it. */
  readonly authority: string
  /** The path of the file with the certificate of the authority. */
  readonly authorityFile: string
}

/** The certificate cannot be read from the directory, or made there. */
export class CertificateError extends Schema.TaggedError<CertificateError>()("CertificateError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** A certificate with less time left is made anew. */
const renewalMillis = 30 * 86_400_000

/** Returns the certificate in `directory`; makes one if it is missing or about to expire. */
export const loadOrMake = Effect.fnUntraced(function*(directory: string) {
  const now = yield* Clock.currentTimeMillis
  return yield* Effect.tryPromise({
    try: async (): Promise<DevelopmentCertificate> => {
      const authorityFile = join(directory, "ca.pem")
      const kept = await load(directory, now)
      if (kept !== undefined) return { ...kept, authorityFile }
      // node-forge takes 40 ms to load, and a certificate is made once.
      const { makeCertificates } = await import("./CertificateMaking.ts")
      const made = makeCertificates(now)
      await mkdir(directory, { recursive: true, mode: 0o700 })
      // The server's certificate comes last: `load` ignores the other files without it.
      await write(join(directory, "ca.pem"), made.authority)
      await write(join(directory, "server.key"), made.key)
      await write(join(directory, "server.pem"), made.certificate)
      return { ...made, authorityFile }
    },
    catch: (cause) =>
      new CertificateError({ message: `The development certificate in ${directory} cannot be read or made`, cause })
  })
})

const write = async (file: string, text: string): Promise<void> => {
  await writeFile(`${file}.new`, text, { mode: 0o600, flush: true })
  await rename(`${file}.new`, file)
}

const load = async (directory: string, now: number) => {
  const read = (name: string) => readFile(join(directory, name), "utf8").catch(() => undefined)
  const [authority, certificate, key] = await Promise.all([read("ca.pem"), read("server.pem"), read("server.key")])
  if (authority === undefined || certificate === undefined || key === undefined) return undefined
  const notAfter = Date.parse(new X509Certificate(certificate).validTo)
  return notAfter - now < renewalMillis ? undefined : { authority, certificate, key }
}
