/**
 * The stores with an audit log: the first write of an action stores the entry of
 * the action in its own transaction (docs/decisions/0055-audit-log.md).
 *
 * Here stands which methods change what the management API manages, and how
 * their results say what they have changed. A method that is not here stores no
 * entry; `AuditLog.carryOut` then stores the entry after the action.
 */
import { Context, Effect, Layer, Option } from "effect"
import { AuditStore } from "./audit/AuditStore.ts"
import { type AuditedAction, type Changed, CurrentAction } from "./audit/AuditedAction.ts"
import { BulkCommandStore } from "./bulk/BulkCommandStore.ts"
import { CertificateStore } from "./certificate/CertificateStore.ts"
import { shortened } from "./kernel/DomainError.ts"
import { CodecStore } from "./codec/CodecStore.ts"
import { CommandStore } from "./command/CommandStore.ts"
import { DeviceGroupStore } from "./group/DeviceGroupStore.ts"
import { DeviceStore } from "./device/DeviceStore.ts"
import { JobStore } from "./job/JobStore.ts"
import { HistoryRetentionStore } from "./history/HistoryRetentionStore.ts"
import { MeshStore } from "./mesh/MeshStore.ts"
import { OtaStore } from "./ota/task/OtaStore.ts"
import { ProductStore } from "./product/ProductStore.ts"
import { AccessKeyStore } from "./project/AccessKeyStore.ts"
import { BrowserSessionStore } from "./project/BrowserSessionStore.ts"
import { QuotaStore } from "./project/QuotaStore.ts"
import { ProjectStore } from "./project/ProjectStore.ts"
import { BindingStore } from "./provisioning/BindingStore.ts"
import { SceneStore } from "./scene/definition/SceneStore.ts"
import { ExecutionStore } from "./scene/execution/ExecutionStore.ts"
import { WebhookKeyStore } from "./scene/execution/WebhookKeyStore.ts"
import { ShadowStore } from "./shadow/ShadowStore.ts"
import { SubscriptionStore } from "./subscription/SubscriptionStore.ts"
import { ThingModelStore } from "./thing-model/ThingModelStore.ts"
import { TopologyStore } from "./gateway/TopologyStore.ts"
import { TraceStore } from "./trace/TraceStore.ts"

/** The stores whose writes are audited. */
type Audited =
  | AccessKeyStore
  | BindingStore
  | BrowserSessionStore
  | BulkCommandStore
  | CertificateStore
  | CodecStore
  | CommandStore
  | DeviceGroupStore
  | DeviceStore
  | ExecutionStore
  | HistoryRetentionStore
  | JobStore
  | MeshStore
  | OtaStore
  | ProductStore
  | ProjectStore
  | QuotaStore
  | SceneStore
  | ShadowStore
  | SubscriptionStore
  | ThingModelStore
  | TopologyStore
  | TraceStore
  | WebhookKeyStore

/** The same stores, which store the entry of the current action with its first write. */
export const layer: Layer.Layer<Audited, never, Audited | AuditStore> = Layer.effectContext(
  Effect.gen(function*() {
    const store = yield* AuditStore
    const wrap = audited(store)
    return Context.make(HistoryRetentionStore, wrap(yield* HistoryRetentionStore, { put: isTrue })).pipe(
      Context.add(
        AccessKeyStore,
        wrap(yield* AccessKeyStore, {
          insert: (outcome, { id }) => outcome === "inserted" && resource("access-key", id),
          remove: (removed) => removed.length > 0,
          removeDescendants: (removed) => removed.length > 0
        })
      ),
      Context.add(BindingStore, wrap(yield* BindingStore, { modify: isTrue })),
      Context.add(
        BulkCommandStore,
        wrap(yield* BulkCommandStore, {
          insert: (created) => created._tag === "Created" && resource("bulk-command", created.bulk.bulkId),
          cancel: isTrue
        })
      ),
      Context.add(
        CertificateStore,
        wrap(yield* CertificateStore, {
          insertAuthority: (outcome, { authorityId }) =>
            outcome === "inserted" && resource("certificate-authority", authorityId),
          activateAuthority: isTrue,
          removeAuthority: isTrue,
          putRevocationList: (outcome) => outcome === "stored",
          insert: (outcome, { serial }) => outcome === "inserted" && resource("certificate", serial),
          revoke: Option.isSome
        })
      ),
      Context.add(CodecStore, wrap(yield* CodecStore, { put: Option.isSome })),
      Context.add(
        CommandStore,
        wrap(yield* CommandStore, {
          cancel: (command) => Option.exists(command, ({ state }) => state === "cancelled")
        })
      ),
      Context.add(
        DeviceGroupStore,
        wrap(yield* DeviceGroupStore, {
          insert: (group) => typeof group === "object" && resource("device-group", group.groupId),
          update: (changed) => typeof changed === "object" && Option.isSome(changed),
          remove: isTrue,
          add: ({ _tag }) => _tag === "Added",
          take: (taken) => taken > 0
        })
      ),
      Context.add(
        DeviceStore,
        wrap(yield* DeviceStore, {
          insertMany: (devices) =>
            Option.exists(devices, ({ length }) => length !== 1) ||
            Option.isSome(devices) && resource("device", devices.value[0]!.deviceId),
          insertBatch: (batch) => Option.isSome(batch) && resource("batch", batch.value.batchId),
          removeBatch: Option.isSome,
          update: Option.isSome,
          rotateSecret: Option.isSome,
          changeTags: (tags) => typeof tags === "object",
          remove: Option.isSome
        })
      ),
      Context.add(ExecutionStore, wrap(yield* ExecutionStore, { enqueue: always })),
      Context.add(
        JobStore,
        wrap(yield* JobStore, {
          create: (created) => created._tag === "Created" && resource("job", created.job.jobId),
          cancel: isTrue,
          remove: isTrue
        })
      ),
      Context.add(
        MeshStore,
        wrap(yield* MeshStore, {
          // A network key is a secret, too.
          insert: (outcome, { networkKey }) =>
            outcome === "inserted" && resource("mesh-network", shortened(networkKey)),
          remove: isTrue,
          addNode: ({ _tag }) => _tag === "Added",
          removeNode: isTrue
        })
      ),
      Context.add(
        OtaStore,
        wrap(yield* OtaStore, {
          insertFirmware: (firmware) => typeof firmware === "object" && resource("firmware", firmware.firmwareId),
          removeFirmware: (outcome) => outcome === "removed",
          createTask: (created) => created._tag === "Created" && resource("task", created.task.taskId),
          endTask: isTrue,
          removeTask: isTrue,
          confirmTask: isTrue,
          openStage: Option.isSome,
          setSigningKey: isTrue,
          removeSigningKey: isTrue,
          save: ({ saved }) => saved.includes(true)
        })
      ),
      Context.add(
        ProductStore,
        wrap(yield* ProductStore, {
          insert: (product) => typeof product === "object" && resource("product", product.productKey),
          rotateSecret: Option.isSome,
          update: isTrue,
          remove: (outcome) => outcome === "removed"
        })
      ),
      Context.add(
        ProjectStore,
        wrap(yield* ProjectStore, {
          insert: named("project", ({ id }) => id),
          remove: (outcome) => outcome === "removed"
        })
      ),
      Context.add(QuotaStore, wrap(yield* QuotaStore, { set: isTrue })),
      Context.add(
        SceneStore,
        wrap(yield* SceneStore, {
          insert: (outcome, { sceneId }) => outcome === "inserted" && resource("scene", sceneId),
          update: (outcome) => outcome === "updated",
          remove: Option.isSome
        })
      ),
      Context.add(
        ShadowStore,
        wrap(yield* ShadowStore, {
          // A modification that refuses returns its error and leaves the shadow as it is.
          modify: (results) => results.some((result) => Option.isSome(result) && !(result.value instanceof Error))
        })
      ),
      Context.add(ThingModelStore, wrap(yield* ThingModelStore, { insert: isTrue })),
      Context.add(
        TopologyStore,
        wrap(yield* TopologyStore, {
          attach: (outcome) => outcome._tag === "Attached",
          detach: (detached) => detached.length > 0,
          openSession: always,
          endSession: isTrue
        })
      ),
      Context.add(WebhookKeyStore, wrap(yield* WebhookKeyStore, { put: (outcome) => outcome === "stored" }))
    ).pipe(
      Context.add(
        BrowserSessionStore,
        wrap(yield* BrowserSessionStore, {
          insert: (isStored, { accessKeyId }) => isStored && resource("access-key", accessKeyId),
          remove: isTrue
        })
      ),
      Context.add(
        SubscriptionStore,
        wrap(yield* SubscriptionStore, {
          insert: (subscription) =>
            typeof subscription === "object" && resource("subscription", subscription.subscriptionId),
          update: (changed) => typeof changed === "object" && Option.isSome(changed),
          remove: isTrue,
          modify: (results) => results.some(Option.isSome)
        })
      ),
      Context.add(TraceStore, wrap(yield* TraceStore, { start: isTrue, stop: isTrue }))
    )
  })
)

// oxlint-disable-next-line typescript/no-explicit-any -- stands for every method of every store
type Method = (...args: ReadonlyArray<any>) => Effect.Effect<any, any, any>

/** For some methods of a store: from the result and the arguments to what has changed. */
type Rules<Store> = {
  readonly [Name in keyof Store]?: Store[Name] extends
    (...args: infer Args) => Effect.Effect<infer A, infer _E, infer _R> ? (result: A, ...args: Args) => Changed
    : never
}

const audited = (log: AuditStore["Service"]) => <Store extends object>(store: Store, rules: Rules<Store>): Store => ({
  ...store,
  ...Object.fromEntries(
    Object.entries(rules).map(([name, changedBy]) => [
      name,
      withEntry(
        log,
        (...args) => (store as Readonly<Record<string, Method>>)[name]!(...args),
        changedBy as (...args: ReadonlyArray<unknown>) => Changed
      )
    ])
  )
})

/** The same method. Without an action, or after its first write, it costs a look at the context. */
const withEntry =
  (log: AuditStore["Service"], method: Method, changedBy: (...args: ReadonlyArray<unknown>) => Changed): Method =>
  (...args) =>
    Effect.withFiber((fiber) => {
      const action: AuditedAction | undefined = Context.get(fiber.context, CurrentAction)
      const write = method(...args)
      return action?.isPending === true ? action.write(log, write, (result) => changedBy(result, ...args)) : write
    })

const always = () => true
const isTrue = (isDone: boolean) => isDone

const resource = (kind: string, id: string | number): Changed => ({ kind, id: String(id) })

/** Of a method that stores its first argument and returns whether it did. */
const named = <A>(kind: string, idOf: (stored: A) => string) => (isStored: boolean, stored: A): Changed =>
  isStored && resource(kind, idOf(stored))
