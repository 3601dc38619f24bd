/**
 * Client certificates and their authorities in memory.
 */
import { CertificateStore, type DeviceCertificate, type DeviceId, expiryOf, type ProjectId } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { type StoredAuthority, Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses certificates of devices that its tables do not have. */
export const layer: Layer.Layer<CertificateStore, never, Tables> = Layer.effect(
  CertificateStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ authorities, certificates, devices, holders, projects }: Tables["Service"]) => {
  const ofProject = (projectId: ProjectId): ReadonlyArray<StoredAuthority> =>
    [...authorities.values()].filter(({ authority }) => authority.projectId === projectId)

  const find = (projectId: ProjectId, authorityId: string): StoredAuthority | undefined => {
    const stored = authorities.get(authorityId)
    return stored?.authority.projectId === projectId ? stored : undefined
  }

  const change = (
    projectId: ProjectId,
    authorityId: string,
    to: (stored: StoredAuthority) => StoredAuthority
  ): boolean => {
    const stored = find(projectId, authorityId)
    if (stored !== undefined) authorities.set(authorityId, to(stored))
    return stored !== undefined
  }

  /** The certificate as it counts: the list of its authority may have revoked it. */
  const seen = (certificate: DeviceCertificate): DeviceCertificate => ({
    ...certificate,
    revokedAt: certificate.revokedAt ??
      authorities.get(certificate.authorityId)?.revoked.get(certificate.serial) ?? null
  })

  const stored = (deviceId: DeviceId) => certificates.get(deviceId) ?? []

  /** Keeps those certificates of a device for which `keeps` is true. */
  const filter = (deviceId: DeviceId, keeps: (certificate: DeviceCertificate) => boolean) => {
    const kept = stored(deviceId).filter((each) => {
      if (!keeps(each)) holders.delete(each.fingerprint)
      return holders.has(each.fingerprint)
    })
    certificates.set(deviceId, kept)
    return kept
  }

  /** Whether a certificate counts at `now`, or must be known as revoked: somebody else may present it again. */
  const mayReturn = (each: DeviceCertificate, now: number): boolean =>
    each.revokedAt === null
      ? expiryOf(each) > now
      : each.notAfter > now && authorities.get(each.authorityId)?.authority.kind === "registered"

  return CertificateStore.of({
    insertAuthority: (authority, { limit, privateKey }) =>
      Effect.sync(() => {
        if (!projects.has(authority.projectId)) return "no-project"
        const known = ofProject(authority.projectId)
        const isTaken = known.some(({ authority: { fingerprint, kind } }) =>
          fingerprint === authority.fingerprint || (kind === "own" && authority.kind === "own")
        )
        if (isTaken) return "taken"
        if (known.length >= limit) return "full"
        authorities.set(authority.authorityId, {
          authority: { ...authority, revocationList: null },
          privateKey,
          revoked: new Map()
        })
        return "inserted"
      }),
    authorities: (projectId) => Effect.sync(() => ofProject(projectId).map(({ authority }) => authority)),
    authority: (projectId, authorityId) =>
      Effect.sync(() => Option.fromUndefinedOr(find(projectId, authorityId)?.authority)),
    ownAuthority: (projectId) =>
      Effect.sync(() =>
        Option.fromUndefinedOr(
          ofProject(projectId).flatMap(({ authority, privateKey }) =>
            privateKey === null ? [] : [{ authority, privateKey }]
          )[0]
        )
      ),
    activateAuthority: (projectId, authorityId) =>
      Effect.sync(() =>
        change(projectId, authorityId, (known) => ({
          ...known,
          authority: { ...known.authority, state: "active" }
        }))
      ),
    removeAuthority: (projectId, authorityId) =>
      Effect.sync(() => {
        if (find(projectId, authorityId) === undefined) return false
        authorities.delete(authorityId)
        for (const deviceId of certificates.keys()) filter(deviceId, (each) => each.authorityId !== authorityId)
        return true
      }),
    putRevocationList: (projectId, authorityId, list, revoked) =>
      Effect.sync(() => {
        const before = find(projectId, authorityId)?.authority.revocationList
        if (before === undefined) return "not-found"
        if (before !== null && before.issuedAt > list.issuedAt) return "older"
        change(projectId, authorityId, (known) => ({
          ...known,
          authority: { ...known.authority, revocationList: list },
          revoked: new Map(revoked.toReversed().map(({ revokedAt, serial }) => [serial, revokedAt]))
        }))
        return "stored"
      }),
    insert: (certificate, { limit, othersEndAt }) =>
      Effect.sync(() => {
        const { createdAt, deviceId, fingerprint, serial } = certificate
        if (!devices.has(deviceId)) return "no-device"
        if (!authorities.has(certificate.authorityId)) return "no-authority"
        const kept = filter(deviceId, (each) => mayReturn(each, createdAt))
        if (holders.has(fingerprint) || kept.some((each) => each.serial === serial)) return "taken"
        if (kept.length >= limit) return "full"
        const others = othersEndAt === null
          ? kept
          : kept.map((each) => ({ ...each, endsAt: Math.min(each.endsAt ?? othersEndAt, othersEndAt) }))
        certificates.set(deviceId, [{ ...certificate, revokedAt: null }, ...others])
        holders.set(fingerprint, deviceId)
        return "inserted"
      }),
    ofDevice: (deviceId) => Effect.sync(() => stored(deviceId).map(seen)),
    revoke: (deviceId, serial, at) =>
      Effect.sync(() => {
        const all = stored(deviceId)
        const known = all.find((each) => each.serial === serial)
        if (known === undefined) return Option.none()
        const revoked = { ...known, revokedAt: seen(known).revokedAt ?? at }
        certificates.set(deviceId, all.map((each) => each === known ? revoked : each))
        return Option.some(revoked)
      }),
    find: (fingerprint) =>
      Effect.sync(() => {
        const deviceId = holders.get(fingerprint)
        const device = deviceId === undefined ? undefined : devices.get(deviceId)
        const certificate = device && stored(device.deviceId).find((each) => each.fingerprint === fingerprint)
        return device === undefined || certificate === undefined
          ? Option.none()
          : Option.some({ ...seen(certificate), productKey: device.productKey, deviceName: device.deviceName })
      })
  })
}
