/**
 * The certificate of a TLS server in files, which are renewed while the server runs.
 */
import { type Duration, Effect, Schedule, Schema, Stream } from "effect"
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

/**
 * Emits what the files hold whenever it differs from what was emitted before,
 * first from `current`. Looks again after `every`; default: 10 seconds. While a
 * file cannot be read, the log says so. For {@link TlsOptions.renewals}.
 */
export const renewals = (
  files: CertificateFiles,
  current: ServerCertificate,
  every: Duration.Input = "10 seconds"
): Stream.Stream<ServerCertificate> =>
  Stream.fromEffectSchedule(
    load(files).pipe(
      Effect.catch(({ cause, file }) =>
        Effect.as(Effect.logWarning(`The certificate is not renewed: ${file} cannot be read`, cause), undefined)
      )
    ),
    Schedule.spaced(every)
  ).pipe(
    Stream.filter((loaded) => loaded !== undefined),
    (loaded) => Stream.concat(Stream.make(current), loaded),
    Stream.changesWith((a, b) => a.certificate === b.certificate && a.key === b.key),
    Stream.drop(1)
  )
