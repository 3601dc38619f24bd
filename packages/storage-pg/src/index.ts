/**
 * Every Device Cloud store on PostgreSQL 14 or newer.
 *
 * {@link layer} is the whole storage on a database, {@link layerClient} the same
 * on a client of your own. {@link layerCloud} adds what several servers share beside
 * the stores: objects, and the time of the database. To use another implementation of a store, provide it
 * over the storage; it wins:
 *
 * ```ts
 * const Storage = MyBindings.layer.pipe(Layer.provideMerge(StoragePg.layer({ url })))
 * ```
 *
 * The layers that keep secrets need a `KeyRing`, under whose keys they seal them:
 * `NodeKeyRing.layerFile(path)` of `platform-node` is one.
 *
 * Each store is also a layer of its own, so that an application can take some
 * stores from here and the others from elsewhere. These layers need a `PgClient`
 * and tables: provide {@link layerMigrations} to them.
 *
 * What can be replaced, and what it takes:
 *
 * - **Alone.** No statement of another store reads or writes the tables of
 *   `AccessKeyStore` (with `BrowserSessionStore`), `AuditStore`, `BindingStore`, `CertificateStore`, `CodecStore`, `ConfigurationStore`, `ConnectRefusalStore`, `FeedReaderStore`, `IdempotencyStore`,
 *   `MeshStore`, `ObjectStore`, `ReplayStore`, `SubscriptionStore`, `ThingModelStore`, `TopologyStore`, `TraceStore`, `TroubleStore`, `WebhookKeyStore`, `NodeBus` and `StoreHealth`. Rows about a
 *   device, a product or a project go when it is removed; a store that lives
 *   elsewhere removes them itself (`DeviceLifecycle` tells it about devices). `QuotaStore` counts access keys and
 *   subscriptions here: their quotas do not limit those that are elsewhere.
 * - **History, with one layer more.** `UplinkStore.commit` writes history in its own
 *   transaction. `HistoryApart.layer` or `HistoryFromFeed.layer` of the core writes it to another
 *   `HistoryStore` instead.
 *   `HistoryStore` goes by `HistoryRetentionStore`.
 * - **Only together.** One transaction or one statement spans the tables of
 *   `ActivityStore`, `ProjectStore`, `QuotaStore`, `ProductStore`, `DeviceStore`, `DeviceGroupStore`, `PresenceStore`, `ShadowStore`,
 *   `UplinkStore`, `FeedStore`, `CommandStore`, `BulkCommandStore`, `OtaStore`, `JobStore`, `SceneStore` and `ExecutionStore`: a commit of what
 *   devices say writes shadows, commands and scene executions; presence reads
 *   commands and stores executions; a firmware report sets the version of the
 *   device; a product is removed only without devices, a project only without
 *   products.
 *
 * What can be used from here while the group is elsewhere: `AuditStore`, `FeedReaderStore`, `HistoryStore`,
 * `IdempotencyStore`, `ObjectStore`, `ReplayStore`, `NodeBus` and `StoreHealth`. The tables of all other stores
 * have foreign keys to projects, products or devices in the same database.
 */
import type {
  DeviceCloud,
  KeyRing,
  KeyRingError,
  ObjectStore as ObjectStoreService,
  StoreHealth
} from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Context, type Duration, Effect, Layer, Redacted } from "effect"
import type { SqlClient } from "effect/sql"
import * as AccessKeyStore from "./AccessKeyStore.ts"
import * as ActivityStore from "./ActivityStore.ts"
import * as AuditStore from "./AuditStore.ts"
import * as BindingStore from "./BindingStore.ts"
import * as BrowserSessionStore from "./BrowserSessionStore.ts"
import * as BulkCommandStore from "./BulkCommandStore.ts"
import * as CertificateStore from "./CertificateStore.ts"
import * as CodecStore from "./CodecStore.ts"
import * as CommandStore from "./CommandStore.ts"
import * as ConnectRefusalStore from "./ConnectRefusalStore.ts"
import * as ConfigurationStore from "./ConfigurationStore.ts"
import * as DatabaseClock from "./DatabaseClock.ts"
import * as DeviceGroupStore from "./DeviceGroupStore.ts"
import * as DeviceStore from "./DeviceStore.ts"
import * as ExecutionStore from "./ExecutionStore.ts"
import * as FeedReaderStore from "./FeedReaderStore.ts"
import * as FeedStore from "./FeedStore.ts"
import * as HistoryRetentionStore from "./HistoryRetentionStore.ts"
import * as HistoryStore from "./HistoryStore.ts"
import * as IdempotencyStore from "./IdempotencyStore.ts"
import { LongReads } from "./LongReads.ts"
import * as JobStore from "./JobStore.ts"
import * as MeshStore from "./MeshStore.ts"
import * as Migrations from "./Migrations.ts"
import * as NodeBus from "./NodeBus.ts"
import * as ObjectStore from "./ObjectStore.ts"
import * as OtaStore from "./OtaStore.ts"
import { type DatabaseError, databaseError } from "./PgErrors.ts"
import * as PresenceStore from "./PresenceStore.ts"
import * as ProductStore from "./ProductStore.ts"
import * as ProjectStore from "./ProjectStore.ts"
import * as SecretResealing from "./SecretResealing.ts"
import * as ReplayStore from "./ReplayStore.ts"
import * as QuotaStore from "./QuotaStore.ts"
import * as SceneStore from "./SceneStore.ts"
import * as ShadowStore from "./ShadowStore.ts"
import { connectTo } from "./SilentConnections.ts"
import * as Health from "./StoreHealth.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"
import * as ThingModelStore from "./ThingModelStore.ts"
import * as TopologyStore from "./TopologyStore.ts"
import * as TraceStore from "./TraceStore.ts"
import * as Transactions from "./Transactions.ts"
import * as TroubleStore from "./TroubleStore.ts"
import * as UplinkStore from "./UplinkStore.ts"
import * as WebhookKeyStore from "./WebhookKeyStore.ts"

export { LongReads } from "./LongReads.ts"
export { DatabaseError } from "./PgErrors.ts"

export { layer as layerAccessKeyStore } from "./AccessKeyStore.ts"
export { layer as layerActivityStore } from "./ActivityStore.ts"
export { layer as layerAuditStore } from "./AuditStore.ts"
export { layer as layerBindingStore } from "./BindingStore.ts"
export { layer as layerBrowserSessionStore } from "./BrowserSessionStore.ts"
export { layer as layerBulkCommandStore } from "./BulkCommandStore.ts"
export { layer as layerCertificateStore } from "./CertificateStore.ts"
export { layer as layerCodecStore } from "./CodecStore.ts"
export { layer as layerCommandStore } from "./CommandStore.ts"
export { layer as layerConfigurationStore } from "./ConfigurationStore.ts"
export { layer as layerConnectRefusalStore } from "./ConnectRefusalStore.ts"
export { layer as layerClock } from "./DatabaseClock.ts"
export { layer as layerDeviceGroupStore } from "./DeviceGroupStore.ts"
export { layer as layerDeviceStore } from "./DeviceStore.ts"
export { layer as layerExecutionStore } from "./ExecutionStore.ts"
export { layer as layerFeedReaderStore } from "./FeedReaderStore.ts"
export { layer as layerFeedStore } from "./FeedStore.ts"
export { layer as layerHistoryRetentionStore } from "./HistoryRetentionStore.ts"
export { layer as layerHistoryStore } from "./HistoryStore.ts"
export { layer as layerIdempotencyStore } from "./IdempotencyStore.ts"
export { layer as layerJobStore } from "./JobStore.ts"
export { layer as layerMeshStore } from "./MeshStore.ts"
export { layer as layerMigrations } from "./Migrations.ts"
export { layer as layerNodeBus } from "./NodeBus.ts"
export { layer as layerObjectStore } from "./ObjectStore.ts"
export { layer as layerOtaStore } from "./OtaStore.ts"
export { layer as layerPresenceStore } from "./PresenceStore.ts"
export { layer as layerProductStore } from "./ProductStore.ts"
export { layer as layerProjectStore } from "./ProjectStore.ts"
export { layer as layerQuotaStore } from "./QuotaStore.ts"
export { layer as layerReplayStore } from "./ReplayStore.ts"
export { layer as layerSceneStore } from "./SceneStore.ts"
export { layer as layerSecretResealing } from "./SecretResealing.ts"
export { layer as layerShadowStore } from "./ShadowStore.ts"
export { layer as layerStoreHealth } from "./StoreHealth.ts"
export { layer as layerSubscriptionStore } from "./SubscriptionStore.ts"
export { layer as layerThingModelStore } from "./ThingModelStore.ts"
export { layer as layerTopologyStore } from "./TopologyStore.ts"
export { layer as layerTraceStore } from "./TraceStore.ts"
export { layer as layerTroubleStore } from "./TroubleStore.ts"
export { layer as layerUplinkStore } from "./UplinkStore.ts"
export { layer as layerWebhookKeyStore } from "./WebhookKeyStore.ts"

/** The stores on a client of your own. Brings the database up to date first. */
export const layerClient: Layer.Layer<
  DeviceCloud.Stores | StoreHealth,
  DatabaseError | KeyRingError,
  PgClient.PgClient | SqlClient.SqlClient | KeyRing
> = Layer.mergeAll(
  AccessKeyStore.layer,
  ActivityStore.layer,
  AuditStore.layer,
  BindingStore.layer,
  BrowserSessionStore.layer,
  BulkCommandStore.layer,
  CertificateStore.layer,
  CodecStore.layer,
  CommandStore.layer.pipe(Layer.provideMerge(ShadowStore.layer)),
  ConnectRefusalStore.layer,
  ConfigurationStore.layer,
  DeviceGroupStore.layer,
  DeviceStore.layer,
  ExecutionStore.layer,
  FeedReaderStore.layer,
  FeedStore.layer,
  HistoryRetentionStore.layer,
  HistoryStore.layer,
  IdempotencyStore.layer,
  JobStore.layer,
  MeshStore.layer,
  Layer.orDie(NodeBus.layer),
  OtaStore.layer,
  PresenceStore.layer,
  ProductStore.layer,
  ProjectStore.layer,
  ReplayStore.layer,
  QuotaStore.layer,
  SceneStore.layer,
  Health.layer,
  SubscriptionStore.layer,
  ThingModelStore.layer,
  TopologyStore.layer,
  TraceStore.layer,
  TroubleStore.layer,
  UplinkStore.layer,
  WebhookKeyStore.layer
).pipe(
  Layer.merge(SecretResealing.layer),
  Layer.provide(Migrations.layer),
  Layer.provide(Transactions.layer)
)

/** Connections for statements that read many rows. */
const readConnections = 4

/** The connections that {@link layer} opens, beside those for short statements: for long reads, to hear other nodes, and at the start for migrations. */
export const otherConnections = readConnections + 2

/**
 * A connection that is silent for so long is probed: networks forget such a one
 * without a word, and whoever only listens would wait for ever.
 */
const keepAlive = "30 seconds"

const connect = (options: PgClient.PgPoolConfig) =>
  Effect.mapError(
    Layer.build(PgClient.layer({ ...options, keepAlive, applicationName: "device-cloud" })),
    databaseError
  )

/**
 * Short statements of many fibers share connections; reads of many rows have others,
 * and the migrations one that they need for as long as they take. A connection on which
 * the database has long been silent ends: after so long, no statement but a migration is under way.
 */
const client = ({ connections = 10, url }: Options) =>
  Layer.effectContext(Effect.gen(function*() {
    // Such as a variable of the environment that is not set: the driver would take a database of its own choice.
    if (!Redacted.isRedacted(url) || typeof Redacted.value(url) !== "string") {
      return yield* Effect.die(new TypeError("url: expected Redacted.make of a text such as postgres://host/database"))
    }
    // Without room for a connection, the pool would wait for ever.
    if (!(connections >= 1)) {
      return yield* Effect.die(new TypeError(`connections: expected a number from 1 on, not ${connections}`))
    }
    const impatient = (patience: Duration.Input) => ({ url, stream: connectTo(Redacted.value(url), patience) })
    const short = yield* connect({ ...impatient("30 seconds"), multiplex: true, maxConnections: connections })
    const long = yield* connect({ ...impatient("5 minutes"), maxConnections: readConnections })
    const migrating = yield* connect({ url, maxConnections: 1 })
    return short.pipe(
      Context.add(LongReads, Transactions.failing(Context.get(long, PgClient.PgClient))),
      Context.add(Migrations.MigrationClient, Context.get(migrating, PgClient.PgClient))
    )
  }))

/** Where the database is, and how much of it {@link layer} uses. */
export interface Options {
  /** For example `postgres://user:password@host:5432/database`. */
  readonly url: Redacted.Redacted
  /** Connections for short statements, at most, from 1 on; {@link otherConnections} are opened beside them. Default: 10. */
  readonly connections?: number
}

/** The stores on the database at `url`. */
export const layer = (
  options: Options
): Layer.Layer<DeviceCloud.Stores | StoreHealth, DatabaseError | KeyRingError, KeyRing> =>
  layerClient.pipe(Layer.provide(client(options)))

/**
 * What servers of one cloud share: the stores, objects, and the time of the database
 * as the `Clock` of all that is built on it, whatever the clock of the server says.
 */
export const layerCloud = (
  options: Options
): Layer.Layer<DeviceCloud.Stores | StoreHealth | ObjectStoreService, DatabaseError | KeyRingError, KeyRing> =>
  Layer.merge(layerClient, ObjectStore.layer.pipe(Layer.provide(Migrations.layer))).pipe(
    Layer.provideMerge(DatabaseClock.layer),
    Layer.provide(client(options))
  )
