/**
 * Client certificates and their authorities on SQLite.
 */
import {
  CertificateStore,
  type DeviceId,
  type DeviceName,
  expiryOf,
  type HeldCertificate,
  type NewAuthority,
  type NewCertificate,
  type ProductKey,
  type ProjectId,
  type RevocationList,
  type RevokedSerial,
  StoreError
} from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { authorityFromRow, type AuthorityRow, certificateFromRow, type CertificateRow } from "./CertificateRow.ts"
import { type Place, Secrets } from "./Secrets.ts"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to projects and devices in the same database. */
export const layer: Layer.Layer<CertificateStore, never, Sqlite | Secrets> = Layer.effect(
  CertificateStore,
  Effect.map(Effect.all([Sqlite, Secrets]), ([sql, secrets]) => make(sql, secrets))
)

const placeOf = (authorityId: string): Place => ["certificate_authority", authorityId, "private_key"]

/** The columns of a certificate `held` as it counts: the list of its authority, `listed`, may have revoked it. */
const columns = `held.fingerprint, held.serial, held.device_id, held.authority_id, held.subject, held.certificate,
  held.not_before, held.not_after, held.ends_at, coalesce(held.revoked_at, listed.revoked_at) AS revoked_at,
  held.created_at`
const listed = `LEFT JOIN revoked_serial AS listed
  ON listed.authority_id = held.authority_id AND listed.serial = held.serial`

interface HeldRow extends CertificateRow {
  readonly product_key: string
  readonly device_name: string
}

const heldFromRow = (row: HeldRow): HeldCertificate => ({
  ...certificateFromRow(row),
  productKey: row.product_key as ProductKey,
  deviceName: row.device_name as DeviceName
})

const make = (sql: Sqlite["Service"], secrets: Secrets["Service"]) => {
  const authorities = (where: string, ...parameters: ReadonlyArray<string>) =>
    sql.all<AuthorityRow>(`SELECT * FROM certificate_authority WHERE ${where} ORDER BY seq`, parameters)

  const isStored = (table: string, column: string, key: string): boolean =>
    sql.get(`SELECT 1 FROM ${table} WHERE ${column} = ?`, [key]) !== undefined

  /** A key that does not open must not sign. */
  const signing = (row: AuthorityRow) => {
    const privateKey = row.private_key === null ? "" : secrets.open(row.private_key, placeOf(row.authority_id))
    return privateKey === ""
      ? new StoreError({
        operation: "CertificateStore.ownAuthority",
        retryable: false,
        cause: new Error(`The key of authority ${row.authority_id} does not open`)
      })
      : Effect.succeed({ authority: authorityFromRow(row), privateKey })
  }

  const insertAuthority = (
    authority: NewAuthority,
    { limit, privateKey }: { readonly privateKey: string | null; readonly limit: number }
  ) => {
    if (sql.get("SELECT 1 FROM project WHERE id = ?", [authority.projectId]) === undefined) return "no-project"
    const known = authorities("project_id = ?", authority.projectId)
    const isTaken = known.some(({ fingerprint, kind }) =>
      fingerprint === authority.fingerprint || (kind === "own" && authority.kind === "own")
    )
    if (isTaken) return "taken"
    if (known.length >= limit) return "full"
    sql.run(
      `INSERT INTO certificate_authority (authority_id, project_id, kind, name, state, verification_code, certificate,
          private_key, fingerprint, subject, not_before, not_after, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        authority.authorityId,
        authority.projectId,
        authority.kind,
        authority.name,
        authority.state,
        authority.verificationCode,
        authority.certificate,
        privateKey === null ? null : secrets.seal(privateKey, placeOf(authority.authorityId)),
        authority.fingerprint,
        authority.subject,
        authority.notBefore,
        authority.notAfter,
        authority.createdAt
      ]
    )
    return "inserted"
  }

  const putRevocationList = (
    projectId: ProjectId,
    authorityId: string,
    { issuedAt, nextAt, size }: RevocationList,
    revoked: ReadonlyArray<RevokedSerial>
  ) => {
    const [known] = authorities("project_id = ? AND authority_id = ?", projectId, authorityId)
    if (known === undefined) return "not-found"
    if (known.list_issued_at !== null && known.list_issued_at > issuedAt) return "older"
    sql.run(
      "UPDATE certificate_authority SET list_issued_at = ?, list_next_at = ?, list_size = ? WHERE authority_id = ?",
      [issuedAt, nextAt, size, authorityId]
    )
    sql.run("DELETE FROM revoked_serial WHERE authority_id = ?", [authorityId])
    for (const { revokedAt, serial } of revoked) {
      sql.run("INSERT OR IGNORE INTO revoked_serial (authority_id, serial, revoked_at) VALUES (?, ?, ?)", [
        authorityId,
        serial,
        revokedAt
      ])
    }
    return "stored"
  }

  /** Removes the certificates of the device that do not count at `now`, but for those that somebody could bring back. */
  const forget = (deviceId: DeviceId, now: number) => {
    const rows = sql.all<CertificateRow & { readonly kind: string }>(
      `SELECT held.*, authority.kind FROM device_certificate AS held
        JOIN certificate_authority AS authority USING (authority_id) WHERE device_id = ?`,
      [deviceId]
    )
    for (const row of rows) {
      const stays = row.revoked_at === null
        ? expiryOf(certificateFromRow(row)) > now
        : row.not_after > now && row.kind === "registered"
      if (!stays) sql.run("DELETE FROM device_certificate WHERE fingerprint = ?", [row.fingerprint])
    }
  }

  const insert = (
    certificate: NewCertificate,
    { limit, othersEndAt }: { readonly othersEndAt: number | null; readonly limit: number }
  ) => {
    const { authorityId, createdAt, deviceId, fingerprint, serial } = certificate
    if (!isStored("device", "device_id", deviceId)) return "no-device"
    if (!isStored("certificate_authority", "authority_id", authorityId)) return "no-authority"
    forget(deviceId, createdAt)
    const others = sql.all<{ readonly serial: string }>("SELECT serial FROM device_certificate WHERE device_id = ?", [
      deviceId
    ])
    const isTaken = others.some((each) => each.serial === serial) ||
      isStored("device_certificate", "fingerprint", fingerprint)
    if (isTaken) return "taken"
    if (others.length >= limit) return "full"
    if (othersEndAt !== null) {
      sql.run("UPDATE device_certificate SET ends_at = min(coalesce(ends_at, ?1), ?1) WHERE device_id = ?2", [
        othersEndAt,
        deviceId
      ])
    }
    sql.run(
      `INSERT INTO device_certificate (fingerprint, serial, device_id, authority_id, subject, certificate, not_before,
          not_after, ends_at, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        fingerprint,
        serial,
        deviceId,
        authorityId,
        certificate.subject,
        certificate.certificate,
        certificate.notBefore,
        certificate.notAfter,
        certificate.endsAt,
        createdAt
      ]
    )
    return "inserted"
  }

  return CertificateStore.of({
    insertAuthority: (authority, options) =>
      sql.write("CertificateStore.insertAuthority", () => insertAuthority(authority, options)),
    authorities: (projectId) =>
      sql.read("CertificateStore.authorities", () => authorities("project_id = ?", projectId).map(authorityFromRow)),
    authority: (projectId, authorityId) =>
      sql.read("CertificateStore.authority", () => {
        const [row] = authorities("project_id = ? AND authority_id = ?", projectId, authorityId)
        return Option.map(Option.fromUndefinedOr(row), authorityFromRow)
      }),
    ownAuthority: (projectId) =>
      sql.read("CertificateStore.ownAuthority", () => authorities("project_id = ? AND kind = 'own'", projectId)).pipe(
        Effect.flatMap(([row]) => row === undefined ? Effect.succeedNone : Effect.asSome(signing(row)))
      ),
    activateAuthority: (projectId, authorityId) =>
      sql.write(
        "CertificateStore.activateAuthority",
        () =>
          sql.run("UPDATE certificate_authority SET state = 'active' WHERE project_id = ? AND authority_id = ?", [
            projectId,
            authorityId
          ]) > 0
      ),
    removeAuthority: (projectId, authorityId) =>
      sql.write(
        "CertificateStore.removeAuthority",
        () =>
          sql.run("DELETE FROM certificate_authority WHERE project_id = ? AND authority_id = ?", [
            projectId,
            authorityId
          ]) > 0
      ),
    putRevocationList: (projectId, authorityId, list, revoked) =>
      sql.write(
        "CertificateStore.putRevocationList",
        () => putRevocationList(projectId, authorityId, list, revoked)
      ),
    insert: (certificate, options) => sql.write("CertificateStore.insert", () => insert(certificate, options)),
    ofDevice: (deviceId) =>
      sql.read(
        "CertificateStore.ofDevice",
        () =>
          sql.all<CertificateRow>(
            `SELECT ${columns} FROM device_certificate AS held ${listed} WHERE held.device_id = ? ORDER BY held.seq DESC`,
            [deviceId]
          ).map(certificateFromRow)
      ),
    revoke: (deviceId, serial, at) =>
      sql.write("CertificateStore.revoke", () => {
        const row = sql.get<CertificateRow>(
          `UPDATE device_certificate SET revoked_at = coalesce(revoked_at, (SELECT listed.revoked_at
              FROM revoked_serial AS listed WHERE listed.authority_id = device_certificate.authority_id
                AND listed.serial = device_certificate.serial), ?)
            WHERE device_id = ? AND serial = ? RETURNING *`,
          [at, deviceId, serial]
        )
        return Option.map(Option.fromUndefinedOr(row), certificateFromRow)
      }),
    find: (fingerprint) =>
      sql.read("CertificateStore.find", () => {
        const row = sql.get<HeldRow>(
          `SELECT ${columns}, device.product_key, device.device_name FROM device_certificate AS held
            JOIN device USING (device_id) ${listed} WHERE held.fingerprint = ?`,
          [fingerprint]
        )
        return Option.map(Option.fromUndefinedOr(row), heldFromRow)
      })
  })
}
