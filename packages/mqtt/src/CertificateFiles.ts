/**
 * The certificate of a TLS server in files, which are renewed while the server runs.
 */
import { Clock, type Duration, Effect, Schedule, Schema, Stream } from "effect"
import { X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import type { ServerCertificate } from "./DevelopmentCertificate.ts"

/** Paths of files in PEM. */
export interface CertificateFiles {
  /** The certificate, and those of intermediate authorities after it. */
  readonly certificate: string
  readonly key: string
}

/** A file cannot be read. */
export class CertificateFileError extends Schema.TaggedError<CertificateFileError>()("CertificateFileError", {
  file: Schema.String,
  cause: Schema.Defect()
}) {}

/** A file that is being written is empty for a moment. Node.js would serve without the key, and refuse everybody. */
const read = (file: string) =>
  Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: (cause) => new CertificateFileError({ file, cause })
  }).pipe(
    Effect.filterOrFail(
      (text) => text.trim() !== "",
      () => new CertificateFileError({ file, cause: new Error("the file is empty") })
    )
  )

/** Reads the files. */
export const load = (files: CertificateFiles): Effect.Effect<ServerCertificate, CertificateFileError> =>
  Effect.all({ certificate: read(files.certificate), key: read(files.key) })

/** Why clients do not trust the certificate at `now`, Unix milliseconds; undefined: its time is right, or it is none. */
const untimely = (file: string, { certificate }: ServerCertificate, now: number): string | undefined => {
  try {
    const { validFrom, validTo } = new X509Certificate(certificate)
    const [from, to] = [Date.parse(validFrom), Date.parse(validTo)]
    if (now > to) return `The certificate in ${file} has expired, at ${new Date(to).toISOString()}: clients refuse it`
    if (now < from) {
      return `The certificate in ${file} counts from ${new Date(from).toISOString()} on: clients refuse it`
    }
  } catch {
    // The server says that it cannot use it.
  }
  return undefined
}

/**
 * Emits what the files hold whenever it differs from what was emitted before,
 * first from `current`. Looks again after `every`; default: 10 seconds. The log
 * says once when a file cannot be read, and at the beginning, at each change, and
 * as time passes, when the certificate has expired or does not count yet. For
 * {@link TlsOptions.renewals}.
 */
export const renewals = (
  files: CertificateFiles,
  current: ServerCertificate,
  every: Duration.Input = "10 seconds"
): Stream.Stream<ServerCertificate> =>
  Stream.suspend(() => {
    let emitted = current
    /** What the log has said of the files as they are. */
    let said: string | undefined
    const say = (problem: string | undefined) => {
      if (problem === said) return Effect.void
      said = problem
      return problem === undefined ? Effect.void : Effect.logWarning(problem)
    }
    const look = Effect.gen(function*() {
      const loaded = yield* load(files)
      const isNew = loaded.certificate !== emitted.certificate || loaded.key !== emitted.key
      if (isNew) said = undefined
      yield* say(untimely(files.certificate, loaded, yield* Clock.currentTimeMillis))
      if (!isNew) return undefined
      emitted = loaded
      return loaded
    }).pipe(
      Effect.catch(({ cause, file }) =>
        Effect.as(say(`The certificate is not renewed: ${file} cannot be read (${String(cause)})`), undefined)
      )
    )
    return Stream.fromEffectSchedule(look, Schedule.spaced(every))
  }).pipe(Stream.filter((loaded) => loaded !== undefined))
