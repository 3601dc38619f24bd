/**
 * Client certificates and their authorities on PostgreSQL.
 */
import {
  Batcher,
  type CertificateAuthority,
  CertificateStore,
  type DeviceCertificate,
  type DeviceId,
  type DeviceName,
  type HeldCertificate,
  type KeyRing,
  type KeyRingError,
  type NewAuthority,
  type NewCertificate,
  type ProductKey,
  type ProjectId,
  type RevocationList,
  type RevokedSerial,
  StoreError
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { type DatabaseError, storeError } from "./PgErrors.ts"
import { eachByIndex, instant, instants, texts } from "./PgParameters.ts"
import { SealedSecrets } from "./SealedSecrets.ts"
import { placeOf } from "./SecretColumns.ts"

/** Can be replaced alone. Its rows refer to projects and devices in the same database. */
export const layer: Layer.Layer<CertificateStore, DatabaseError | KeyRingError, PgClient.PgClient | KeyRing> = Layer
  .effect(CertificateStore, Effect.suspend(() => make))
  .pipe(Layer.provide(SealedSecrets.layer))

const table = "certificate_authority"

interface AuthorityRow {
  readonly authority_id: string
  readonly project_id: string
  readonly kind: string
  readonly name: string
  readonly state: string
  readonly verification_code: string
  readonly certificate: string
  readonly private_key: string | null
  readonly sealed_with: number
  readonly fingerprint: string
  readonly subject: string
  readonly not_before: Date
  readonly not_after: Date
  readonly list_issued_at: Date | null
  readonly list_next_at: Date | null
  readonly list_size: number | null
  readonly created_at: Date
}

const authorityFromRow = (row: AuthorityRow): CertificateAuthority => ({
  authorityId: row.authority_id,
  projectId: row.project_id as ProjectId,
  kind: row.kind as CertificateAuthority["kind"],
  name: row.name,
  state: row.state as CertificateAuthority["state"],
  verificationCode: row.verification_code,
  certificate: row.certificate,
  fingerprint: row.fingerprint,
  subject: row.subject,
  notBefore: row.not_before.getTime(),
  notAfter: row.not_after.getTime(),
  revocationList: row.list_issued_at === null
    ? null
    : {
      issuedAt: row.list_issued_at.getTime(),
      nextAt: row.list_next_at?.getTime() ?? null,
      size: row.list_size ?? 0
    },
  createdAt: row.created_at.getTime()
})

interface CertificateRow {
  readonly fingerprint: string
  readonly serial: string
  readonly device_id: string
  readonly authority_id: string
  readonly subject: string
  readonly certificate: string
  readonly not_before: Date
  readonly not_after: Date
  readonly ends_at: Date | null
  readonly revoked_at: Date | null
  readonly created_at: Date
}

interface HeldRow extends CertificateRow {
  readonly product_key: string
  readonly device_name: string
}

const certificateFromRow = (row: CertificateRow): DeviceCertificate => ({
  fingerprint: row.fingerprint,
  serial: row.serial,
  deviceId: row.device_id as DeviceId,
  authorityId: row.authority_id,
  subject: row.subject,
  certificate: row.certificate,
  notBefore: row.not_before.getTime(),
  notAfter: row.not_after.getTime(),
  endsAt: row.ends_at?.getTime() ?? null,
  revokedAt: row.revoked_at?.getTime() ?? null,
  createdAt: row.created_at.getTime()
})

const heldFromRow = (row: HeldRow): HeldCertificate => ({
  ...certificateFromRow(row),
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName
})

/** The columns of a certificate `held` as it counts: the list of its authority, `listed`, may have revoked it. */
const columns = `held.fingerprint, held.serial, held.device_id, held.authority_id, held.subject, held.certificate,
  held.not_before, held.not_after, held.ends_at, coalesce(held.revoked_at, listed.revoked_at) AS revoked_at,
  held.created_at`
const listed = `LEFT JOIN revoked_serial AS listed
  ON listed.authority_id = held.authority_id AND listed.serial = held.serial`

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const secrets = yield* SealedSecrets

  /** Look-ups of many callers share one statement: while one is on its way, the next one collects. */
  const find = yield* Batcher.make({
    capacity: 8192,
    maxBatch: 500,
    gathers: false,
    commit: (fingerprints: ReadonlyArray<string>) =>
      Effect.map(
        sql<HeldRow>`SELECT ${sql.literal(columns)}, device.product_key, device.device_name
          FROM (SELECT * FROM unnest(${texts(fingerprints)}) ${
          eachByIndex(sql, fingerprints.length)
        }) AS asked (fingerprint)
          JOIN device_certificate AS held ON held.fingerprint = asked.fingerprint
          JOIN device ON device.device_id = held.device_id ${sql.literal(listed)}`,
        (rows) => {
          const found = new Map(rows.map((row) => [row.fingerprint, heldFromRow(row)]))
          return fingerprints.map((fingerprint) => Option.fromUndefinedOr(found.get(fingerprint)))
        }
      )
  })

  /** A key that does not open must not sign. */
  const signing = (row: AuthorityRow) => {
    const place = placeOf(table, row.authority_id, "private_key")
    const privateKey = row.private_key === null ? undefined : secrets.tryOpen(row.sealed_with, row.private_key, place)
    return privateKey === undefined
      ? new StoreError({
        operation: "CertificateStore.ownAuthority",
        retryable: false,
        cause: new Error(`The key of authority ${row.authority_id} does not open`)
      })
      : Effect.succeed({ authority: authorityFromRow(row), privateKey })
  }

  const insertAuthority = Effect.fnUntraced(function*(
    authority: NewAuthority,
    { limit, privateKey }: { readonly privateKey: string | null; readonly limit: number }
  ) {
    const { authorityId, projectId } = authority
    // The authorities of one project are counted one after the other.
    const project = yield* sql`SELECT 1 FROM project WHERE id = ${projectId} FOR NO KEY UPDATE`
    if (project.length === 0) return "no-project"
    const known = yield* sql<Pick<AuthorityRow, "fingerprint" | "kind">>`
      SELECT fingerprint, kind FROM certificate_authority WHERE project_id = ${projectId}`
    const isTaken = known.some(({ fingerprint, kind }) =>
      fingerprint === authority.fingerprint || (kind === "own" && authority.kind === "own")
    )
    if (isTaken) return "taken"
    if (known.length >= limit) return "full"
    const { key, number } = secrets.current()
    const sealed = privateKey === null ? null : key.seal(privateKey, placeOf(table, authorityId, "private_key"))
    yield* sql`INSERT INTO certificate_authority (authority_id, project_id, kind, name, state, verification_code,
        certificate, private_key, sealed_with, fingerprint, subject, not_before, not_after, created_at)
      VALUES (${authorityId}, ${projectId}, ${authority.kind}, ${authority.name}, ${authority.state},
        ${authority.verificationCode}, ${authority.certificate}, ${sealed}, ${number}, ${authority.fingerprint},
        ${authority.subject}, ${instant(authority.notBefore)}, ${instant(authority.notAfter)},
        ${instant(authority.createdAt)})`
    return "inserted"
  }, sql.withTransaction)

  const putRevocationList = Effect.fnUntraced(function*(
    projectId: ProjectId,
    authorityId: string,
    { issuedAt, nextAt, size }: RevocationList,
    revoked: ReadonlyArray<RevokedSerial>
  ) {
    const [known] = yield* sql<Pick<AuthorityRow, "list_issued_at">>`SELECT list_issued_at FROM certificate_authority
      WHERE project_id = ${projectId} AND authority_id = ${authorityId} FOR NO KEY UPDATE`
    if (known === undefined) return "not-found"
    if (known.list_issued_at !== null && known.list_issued_at.getTime() > issuedAt) return "older"
    yield* sql`UPDATE certificate_authority SET list_issued_at = ${instant(issuedAt)},
        list_next_at = ${nextAt === null ? null : instant(nextAt)}, list_size = ${size}
      WHERE authority_id = ${authorityId}`
    yield* sql`DELETE FROM revoked_serial WHERE authority_id = ${authorityId}`
    yield* sql`INSERT INTO revoked_serial (authority_id, serial, revoked_at)
      SELECT ${authorityId}, serial, revoked_at
      FROM unnest(${texts(revoked.map(({ serial }) => serial))},
        ${instants(revoked.map(({ revokedAt }) => revokedAt))}) AS entry (serial, revoked_at)
      ON CONFLICT DO NOTHING`
    return "stored"
  }, sql.withTransaction)

  const insert = Effect.fnUntraced(function*(
    certificate: NewCertificate,
    { limit, othersEndAt }: { readonly othersEndAt: number | null; readonly limit: number }
  ) {
    const { authorityId, createdAt, deviceId, endsAt, fingerprint, serial } = certificate
    // Certificates of one device are counted one after the other.
    const device = yield* sql`SELECT 1 FROM device WHERE device_id = ${deviceId} FOR NO KEY UPDATE`
    if (device.length === 0) return "no-device"
    const authority = yield* sql`SELECT 1 FROM certificate_authority WHERE authority_id = ${authorityId} FOR KEY SHARE`
    if (authority.length === 0) return "no-authority"
    yield* sql`DELETE FROM device_certificate AS held USING certificate_authority AS authority
      WHERE held.device_id = ${deviceId} AND authority.authority_id = held.authority_id
        AND CASE WHEN held.revoked_at IS NULL THEN least(held.not_after, held.ends_at) <= ${instant(createdAt)}
          ELSE held.not_after <= ${instant(createdAt)} OR authority.kind <> 'registered' END`
    const others = yield* sql<{ readonly serial: string }>`
      SELECT serial FROM device_certificate WHERE device_id = ${deviceId}`
    if (others.some((each) => each.serial === serial)) return "taken"
    const inserted = others.length >= limit ? [] : yield* sql`
      INSERT INTO device_certificate (fingerprint, serial, device_id, authority_id, subject, certificate, not_before,
        not_after, ends_at, created_at)
      VALUES (${fingerprint}, ${serial}, ${deviceId}, ${authorityId}, ${certificate.subject},
        ${certificate.certificate}, ${instant(certificate.notBefore)}, ${instant(certificate.notAfter)},
        ${endsAt === null ? null : instant(endsAt)}, ${instant(createdAt)})
      ON CONFLICT (fingerprint) DO NOTHING RETURNING fingerprint`
    if (inserted.length === 0) {
      const taken = yield* sql`SELECT 1 FROM device_certificate WHERE fingerprint = ${fingerprint}`
      return taken.length > 0 ? "taken" : "full"
    }
    if (othersEndAt !== null) {
      yield* sql`UPDATE device_certificate SET ends_at = least(ends_at, ${instant(othersEndAt)})
        WHERE device_id = ${deviceId} AND fingerprint <> ${fingerprint}`
    }
    return "inserted"
  }, sql.withTransaction)

  return CertificateStore.of({
    insertAuthority: (authority, options) =>
      Effect.mapError(insertAuthority(authority, options), storeError("CertificateStore.insertAuthority")),
    authorities: (projectId) =>
      sql<AuthorityRow>`SELECT * FROM certificate_authority WHERE project_id = ${projectId} ORDER BY seq`.pipe(
        Effect.map((rows) => rows.map(authorityFromRow)),
        Effect.mapError(storeError("CertificateStore.authorities"))
      ),
    authority: (projectId, authorityId) =>
      sql<AuthorityRow>`SELECT * FROM certificate_authority
        WHERE project_id = ${projectId} AND authority_id = ${authorityId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), authorityFromRow)),
        Effect.mapError(storeError("CertificateStore.authority"))
      ),
    ownAuthority: (projectId) =>
      sql<AuthorityRow>`SELECT * FROM certificate_authority WHERE project_id = ${projectId} AND kind = 'own'`.pipe(
        Effect.flatMap(secrets.ready),
        Effect.mapError(storeError("CertificateStore.ownAuthority")),
        Effect.flatMap(([row]) => row === undefined ? Effect.succeedNone : Effect.asSome(signing(row)))
      ),
    activateAuthority: (projectId, authorityId) =>
      sql`UPDATE certificate_authority SET state = 'active'
        WHERE project_id = ${projectId} AND authority_id = ${authorityId} RETURNING authority_id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("CertificateStore.activateAuthority"))
      ),
    removeAuthority: (projectId, authorityId) =>
      sql`DELETE FROM certificate_authority
        WHERE project_id = ${projectId} AND authority_id = ${authorityId} RETURNING authority_id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("CertificateStore.removeAuthority"))
      ),
    putRevocationList: (projectId, authorityId, list, revoked) =>
      Effect.mapError(
        putRevocationList(projectId, authorityId, list, revoked),
        storeError("CertificateStore.putRevocationList")
      ),
    insert: (certificate, options) =>
      Effect.mapError(insert(certificate, options), storeError("CertificateStore.insert")),
    ofDevice: (deviceId) =>
      sql<CertificateRow>`SELECT ${sql.literal(columns)} FROM device_certificate AS held ${sql.literal(listed)}
        WHERE held.device_id = ${deviceId} ORDER BY held.seq DESC`.pipe(
        Effect.map((rows) => rows.map(certificateFromRow)),
        Effect.mapError(storeError("CertificateStore.ofDevice"))
      ),
    revoke: (deviceId, serial, at) =>
      sql<CertificateRow>`UPDATE device_certificate AS held SET revoked_at = coalesce(held.revoked_at,
          (SELECT listed.revoked_at FROM revoked_serial AS listed
            WHERE listed.authority_id = held.authority_id AND listed.serial = held.serial),
          ${instant(at)})
        WHERE device_id = ${deviceId} AND serial = ${serial} RETURNING *`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), certificateFromRow)),
        Effect.mapError(storeError("CertificateStore.revoke"))
      ),
    find: (fingerprint) => Effect.mapError(find.submit(fingerprint), storeError("CertificateStore.find"))
  })
})
