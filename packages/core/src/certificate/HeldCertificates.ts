/**
 * Which device holds a certificate. Each node remembers certificates that have
 * been presented lately, and ends the connections of those that are revoked, also
 * when another node has revoked them.
 */
import { Array, Context, Effect, Layer, Option, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { close, type DeviceSession } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { DeviceId } from "../device/Device.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import { CertificateStore, type HeldCertificate } from "./CertificateStore.ts"

export class HeldCertificates extends Context.Service<HeldCertificates, {
  /** Returns the certificate with its device; undefined: no device holds it. */
  readonly find: (fingerprint: string) => Effect.Effect<HeldCertificate | undefined, StoreError>
  /**
   * The certificates of a device have changed, or `all` may have: all nodes read
   * them again, and end connections that were made with one that is revoked or
   * gone. A connection stays whose certificate has expired.
   */
  readonly changed: (which: ChangedCertificates | "all") => Effect.Effect<void>
}>()("@device-cloud/core/certificate/HeldCertificates") {
  static readonly layer: Layer.Layer<HeldCertificates, never, CertificateStore | DeviceSessions | NodeBus> = Layer
    .effect(HeldCertificates, Effect.suspend(() => make))
}

/** Certificates of one device. */
export interface ChangedCertificates {
  readonly deviceId: DeviceId
  /** At most `maxCertificates`. */
  readonly fingerprints: ReadonlyArray<string>
}

/** Certificates in the cache. */
const capacity = 50_000

/** How long a cached certificate may count after a change whose notice was lost, milliseconds. */
const timeToLive = 60_000

/** Sessions that are compared with the store at once. */
const compared = 500

/** How often all sessions are compared with the store, whether or not there were notices. */
const comparedEvery = "1 minute"

const CertificatesChanged = NodeBus.channel(
  "certificate/changed",
  Schema.Union([
    Schema.Struct({ deviceId: DeviceId, fingerprints: Schema.Array(Schema.String) }),
    Schema.Literal("all")
  ])
)

const make = Effect.gen(function*() {
  const store = yield* CertificateStore
  const sessions = yield* DeviceSessions
  const channel = yield* CertificatesChanged
  const run = Effect.runForkWith(yield* Effect.context<never>())

  const lookUp = (fingerprint: string) =>
    Effect.map(store.find(fingerprint), Option.map((held) => [fingerprint, held] as const))

  const cache = yield* NodeCache.make({
    capacity,
    timeToLive,
    load: (fingerprints: ReadonlyArray<string>) =>
      Effect.map(
        Effect.forEach(fingerprints, lookUp, { concurrency: "unbounded" }),
        (found) => new Map(found.flatMap(Option.toArray))
      )
  })

  const fingerprintOf = ({ connection }: DeviceSession) => connection.certificate

  /** Ends those sessions whose certificate is revoked or gone. */
  const compare = Effect.fnUntraced(function*(some: ReadonlyArray<DeviceSession>) {
    const fingerprints = some.flatMap((session) => fingerprintOf(session) ?? [])
    if (fingerprints.length === 0) return
    const found = yield* untilStored(cache.get(fingerprints))
    for (const { connection } of some) {
      if (connection.certificate === undefined) continue
      const held = found.get(connection.certificate)
      if (held === undefined || held.revokedAt !== null || held.deviceId !== connection.device.deviceId) {
        yield* close(connection, "revoked")
      }
    }
  }, Effect.catchCause((cause) => Effect.logError("Certificates of connections could not be checked", cause)))

  /** The sessions that were made with a certificate. */
  const certified = new Set<DeviceSession>()

  const compareAll = Effect.suspend(() =>
    Effect.forEach(Array.chunksOf([...certified], compared), compare, { discard: true })
  )

  const forgetAll = Effect.suspend(() => {
    cache.forgetAll()
    return compareAll
  })

  const heard = (which: ChangedCertificates | "all") =>
    Effect.suspend(() => {
      if (which === "all") return forgetAll
      for (const fingerprint of which.fingerprints) cache.forget(fingerprint)
      const session = sessions.session(which.deviceId)
      return session === undefined ? Effect.void : compare([session])
    })

  yield* channel.subscribe({ heard, missed: forgetAll })
  // A node may revoke a certificate and end before the others hear of it.
  yield* compareAll.pipe(Periodic.every(comparedEvery))
  // A certificate may be revoked between the check of a CONNECT and its session.
  yield* sessions.listen({
    attached: (session) => {
      if (fingerprintOf(session) === undefined) return
      certified.add(session)
      run(compare([session]))
    },
    detached: (session) => certified.delete(session)
  })

  return HeldCertificates.of({
    find: (fingerprint) => {
      const fresh = cache.fresh(fingerprint)
      return fresh === undefined
        ? Effect.map(cache.get([fingerprint]), (found) => found.get(fingerprint))
        : Effect.succeed(fresh)
    },
    changed: (which) =>
      Effect.andThen(
        heard(which),
        channel.publish([which]).pipe(
          Effect.catch((error) => Effect.logWarning("Other nodes could not be told of certificates", error))
        )
      )
  })
})
