/**
 * Manages access keys and authenticates the callers of the management API.
 */
import { Clock, Context, Effect, Layer, Option, Redacted, Schedule, Schema } from "effect"
import { Base64Url, Hex } from "effect/encoding"
import { NodeBus } from "../cluster/NodeBus.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { equalInConstantTime, Mac } from "../kernel/Mac.ts"
import { Randomness } from "../kernel/Randomness.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { printable } from "../kernel/Text.ts"
import {
  type AccessKey,
  AccessKeyDraft,
  AccessKeyExpired,
  accessKeyIdOf,
  AccessKeyNotFound,
  AccessKeyNotRemovable,
  expiresSoon,
  MalformedAccessKey,
  type NamedAccessKey,
  type Principal,
  RightsExceeded,
  UnknownAccessKey
} from "./AccessKey.ts"
import { AccessKeyStore } from "./AccessKeyStore.ts"
import { grant } from "./KeyRights.ts"
import { defaultProjectId, type ProjectId, ProjectNotFound } from "./Project.ts"
import type { QuotaExceeded } from "./Quota.ts"
import { Quotas } from "./Quotas.ts"

export class AccessKeys extends Context.Service<AccessKeys, {
  /** Makes a key that is stored nowhere, for `setOwner`. */
  readonly generate: Effect.Effect<Redacted.Redacted>
  /** Makes `key` the only key with role `owner`; the key belongs to the default project. */
  readonly setOwner: (key: Redacted.Redacted) => Effect.Effect<void, MalformedAccessKey | StoreError>
  /**
   * Creates a key. Only this call returns the key itself: the store keeps its SHA-256.
   * Fails with `RightsExceeded` if the draft asks for more than the creator has, and
   * with `UnknownAccessKey` if the creator was removed meanwhile. Without a creator
   * the program itself creates the key.
   */
  readonly create: (projectId: ProjectId, draft: AccessKeyDraft, creator?: Principal) => Effect.Effect<
    { readonly accessKey: AccessKey; readonly key: Redacted.Redacted },
    InvalidInput | ProjectNotFound | QuotaExceeded | RightsExceeded | UnknownAccessKey | StoreError
  >
  /** Returns a page of the keys of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<AccessKey>, InvalidInput | StoreError>
  /**
   * Removes a key; with `cascade` also all keys that it has created, directly or
   * through others. Fails with `AccessKeyNotRemovable` for the owner's key, which
   * `setOwner` replaces. With `cascade` and `isOwner`, the id may be that of a key
   * that is gone, for example of an owner's key that was stolen and replaced: all
   * keys that come from it go, in all projects.
   */
  readonly remove: (
    projectId: ProjectId,
    accessKeyId: string,
    options?: { readonly cascade: boolean; readonly isOwner?: boolean }
  ) => Effect.Effect<void, AccessKeyNotFound | AccessKeyNotRemovable | StoreError>
  /** Forgets all remembered keys on all nodes. Call it after a project is removed with its keys. */
  readonly forget: Effect.Effect<void>
  /**
   * Completes when the key of this id no longer works: within a second after it
   * expires or is removed on any node, alone or with its project, also if the notice
   * is lost. Waits on while the store cannot be reached.
   */
  readonly ended: (accessKeyId: string) => Effect.Effect<void>
  /**
   * Returns project and rights of the caller, and notes the use; whoever calls
   * checks the rights. A removed key stops working at once on all nodes, and within
   * a second on a node that the notice does not reach. The log tells once of each
   * key that ends soon.
   */
  readonly authenticate: (
    key: Redacted.Redacted
  ) => Effect.Effect<Principal, UnknownAccessKey | AccessKeyExpired | StoreError>
  /** As `authenticate`, for a caller who has shown the key of this id before. */
  readonly principalOf: (
    accessKeyId: string
  ) => Effect.Effect<Principal, UnknownAccessKey | AccessKeyExpired | StoreError>
}>()("@device-cloud/core/project/AccessKeys") {
  static readonly layer: Layer.Layer<
    AccessKeys,
    never,
    AccessKeyStore | Identifiers | NodeBus | Mac | Quotas | Randomness
  > = Layer.effect(AccessKeys, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(AccessKeyDraft)

/** The secret part of a key. */
const secretBytes = 32

/** Removed keys that are told one by one; more are told as "any". */
const maxNotices = 100
/** Keys that are remembered. */
const capacity = 10_000
/** How long a removed key may still work on a node that the notice does not reach, milliseconds. */
const timeToLive = 500
/** How often uses are written. */
const useInterval = "1 minute"
/** How often `ended` looks at its key. */
const endedInterval = "250 millis"

/** The removed key; null: any key may be removed, for example with its project. */
const AccessKeysRemoved = NodeBus.channel(
  "project/access-keys",
  Schema.Struct({ accessKeyId: Schema.NullOr(Schema.String) })
)

const make = Effect.gen(function*() {
  const store = yield* AccessKeyStore
  const identifiers = yield* Identifiers
  const quotas = yield* Quotas
  const mac = yield* Mac
  const random = yield* Randomness
  const channel = yield* AccessKeysRemoved
  const clock = yield* Clock.Clock

  const encoder = new TextEncoder()
  const hashOf = (key: string): string => Hex.encode(mac.sha256(encoder.encode(key)))

  const known = yield* NodeCache.make({
    capacity,
    timeToLive,
    load: (ids: ReadonlyArray<string>) =>
      Effect.map(
        Effect.forEach(ids, store.find),
        (found) => new Map(found.flatMap(Option.toArray).map((key) => [key.id, key]))
      )
  })

  /** The latest use of each key that is not written yet. */
  const uses = new Map<string, number>()

  const forgetHere = (accessKeyId: string | null) =>
    Effect.sync(() => accessKeyId === null ? known.forgetAll() : known.forget(accessKeyId))

  /** Null: any key may be removed. */
  const forget = (accessKeyId: string | null) =>
    Effect.andThen(forgetHere(accessKeyId), channel.publish([{ accessKeyId }])).pipe(
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of access keys", error))
    )

  yield* channel.subscribe({ heard: ({ accessKeyId }) => forgetHere(accessKeyId), missed: forgetHere(null) })

  const generate = Effect.map(identifiers.accessKeyId, (id) => ({
    id,
    key: `dck_${id}_${Base64Url.encode(random.bytes(secretBytes))}`
  }))

  const setOwner = Effect.fn("AccessKeys.setOwner")(function*(redacted: Redacted.Redacted) {
    const key = Redacted.value(redacted)
    const id = accessKeyIdOf(key)
    if (id === undefined) return yield* new MalformedAccessKey()
    yield* store.replaceOwner({
      id,
      projectId: defaultProjectId,
      name: "owner",
      role: "owner",
      scopes: {},
      addresses: null,
      hash: hashOf(key),
      createdAt: yield* Clock.currentTimeMillis,
      expiresAt: null,
      createdBy: null,
      lastUsedAt: null
    })
    yield* forget(null)
  })

  const create = Effect.fn("AccessKeys.create")(function*(
    projectId: ProjectId,
    input: AccessKeyDraft,
    creator?: Principal
  ) {
    const draft = yield* decodeDraft(input)
    if (creator !== undefined && creator.role !== "owner" && creator.projectId !== projectId) {
      return yield* new RightsExceeded({ field: "projectId" })
    }
    const rights = grant(draft, creator)
    if ("exceeds" in rights) return yield* new RightsExceeded({ field: rights.exceeds })
    const { id, key } = yield* generate
    const accessKey: AccessKey = {
      id,
      projectId,
      name: draft.name,
      ...rights,
      hash: hashOf(key),
      createdAt: yield* Clock.currentTimeMillis,
      createdBy: creator?.accessKeyId ?? null,
      lastUsedAt: null
    }
    switch (yield* quotas.within(projectId, "accessKeys", 1, store.insert(accessKey))) {
      case "inserted":
        return { accessKey, key: Redacted.make(key) }
      case "no-project":
        return yield* new ProjectNotFound({ projectId })
      case "no-creator":
        return yield* new UnknownAccessKey()
    }
  })

  const remove = Effect.fn("AccessKeys.remove")(function*(
    projectId: ProjectId,
    accessKeyId: string,
    options?: { readonly cascade: boolean; readonly isOwner?: boolean }
  ) {
    const found = yield* store.find(accessKeyId)
    if (Option.isSome(found) && found.value.projectId === projectId && found.value.role === "owner") {
      return yield* new AccessKeyNotRemovable({ accessKeyId })
    }
    const isGone = Option.isNone(found) && options?.cascade === true && options.isOwner === true
    const removed = yield* isGone
      ? store.removeDescendants(accessKeyId)
      : store.remove(projectId, accessKeyId, options)
    if (removed.length === 0) return yield* new AccessKeyNotFound({ accessKeyId })
    yield* removed.length > maxNotices ? forget(null) : Effect.forEach(removed, forget, { discard: true })
  })

  /** The keys of which the log has told that they end soon. */
  const warned = new Set<string>()

  const warn = ({ accessKeyId, accessKeyName, projectId }: NamedAccessKey, expiresAt: number) =>
    Effect.suspend(() => {
      if (warned.size >= capacity) warned.clear()
      warned.add(accessKeyId)
      return Effect.logWarning("An access key ends soon", {
        accessKeyId,
        name: printable(accessKeyName),
        projectId,
        expiresAt: new Date(expiresAt).toISOString()
      })
    })

  const nameOf = ({ id, name, projectId }: AccessKey): NamedAccessKey => ({
    accessKeyId: id,
    accessKeyName: name,
    projectId
  })

  const find = (id: string): Effect.Effect<AccessKey, UnknownAccessKey | StoreError> =>
    Effect.suspend(() => {
      const fresh = known.fresh(id)
      if (fresh !== undefined) return Effect.succeed(fresh)
      return Effect.flatMap(known.get([id]), (found) => {
        const key = found.get(id)
        return key === undefined ? Effect.fail(new UnknownAccessKey()) : Effect.succeed(key)
      })
    })

  const admit = (found: AccessKey): Effect.Effect<Principal, AccessKeyExpired> => {
    const { addresses, expiresAt, id, role, scopes } = found
    const named = nameOf(found)
    const now = clock.currentTimeMillisUnsafe()
    if (expiresAt !== null && expiresAt <= now) {
      return Effect.fail(new AccessKeyExpired({ expiredAt: expiresAt, named }))
    }
    uses.set(id, now)
    // V8 copies a spread fast only when it stands last.
    const principal: Principal = { role, scopes, addresses, expiresAt, ...named }
    return expiresSoon(expiresAt, now) && !warned.has(id)
      ? Effect.as(warn(named, expiresAt!), principal)
      : Effect.succeed(principal)
  }

  const authenticate: AccessKeys["Service"]["authenticate"] = (redacted) => {
    const key = Redacted.value(redacted)
    const id = accessKeyIdOf(key)
    if (id === undefined) return Effect.fail(new UnknownAccessKey())
    return Effect.flatMap(
      find(id),
      (found): Effect.Effect<Principal, UnknownAccessKey | AccessKeyExpired> =>
        equalInConstantTime(found.hash, hashOf(key))
          ? admit(found)
          : Effect.fail(new UnknownAccessKey({ named: nameOf(found) }))
    )
  }

  const writeUses = Effect.suspend(() => {
    if (uses.size === 0) return Effect.void
    const noted = [...uses].map(([id, at]) => ({ id, at }))
    uses.clear()
    // They are noted the next time, unless the keys have been used since.
    const putBack = Effect.sync(() => {
      for (const { at, id } of noted) if (!uses.has(id)) uses.set(id, at)
    })
    return Effect.onError(store.markUsed(noted), () => putBack)
  }).pipe(
    Effect.catchCause((cause) => Effect.logWarning("The latest uses of access keys are not noted", cause))
  )

  yield* Effect.addFinalizer(() => Effect.timeoutOption(writeUses, "2 seconds"))
  yield* writeUses.pipe(Effect.schedule(Schedule.spaced(useInterval)), Effect.forkScoped)

  const isEnded = Effect.fnUntraced(function*(accessKeyId: string) {
    const found = known.fresh(accessKeyId) ?? (yield* known.get([accessKeyId])).get(accessKeyId)
    return found === undefined || found.expiresAt !== null && found.expiresAt <= (yield* Clock.currentTimeMillis)
  }, Effect.orElseSucceed(() => false))

  const ended = (accessKeyId: string) =>
    isEnded(accessKeyId).pipe(
      Effect.repeat({ until: (isOver) => isOver, schedule: Schedule.spaced(endedInterval) }),
      Effect.asVoid
    )

  return AccessKeys.of({
    generate: Effect.map(generate, ({ key }) => Redacted.make(key)),
    setOwner,
    create,
    list: paged(store.list),
    remove,
    forget: forget(null),
    ended,
    authenticate,
    principalOf: (accessKeyId) => Effect.flatMap(find(accessKeyId), admit)
  })
})
