/**
 * Manages access keys and authenticates the callers of the management API.
 */
import { Clock, Context, Crypto, Effect, Layer, Option, Redacted, Schema } from "effect"
import { Base64Url, Hex } from "effect/encoding"
import { NodeBus } from "../cluster/NodeBus.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { equalInConstantTime } from "../kernel/Mac.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import {
  type AccessKey,
  AccessKeyDraft,
  AccessKeyExpired,
  accessKeyIdOf,
  AccessKeyNotFound,
  AccessKeyNotRemovable,
  MalformedAccessKey,
  type Principal,
  UnknownAccessKey
} from "./AccessKey.ts"
import { AccessKeyStore } from "./AccessKeyStore.ts"
import { defaultProjectId, type ProjectId, ProjectNotFound } from "./Project.ts"

export class AccessKeys extends Context.Service<AccessKeys, {
  /** Makes `key` the only key with role `owner`; the key belongs to the default project. */
  readonly setOwner: (key: Redacted.Redacted) => Effect.Effect<void, MalformedAccessKey | StoreError>
  /** Creates a key. Only this call returns the key itself: the store keeps its SHA-256. */
  readonly create: (projectId: ProjectId, draft: AccessKeyDraft) => Effect.Effect<
    { readonly accessKey: AccessKey; readonly key: Redacted.Redacted },
    InvalidInput | ProjectNotFound | StoreError
  >
  /** Returns a page of the keys of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<AccessKey>, StoreError>
  /** Removes a key. Fails with `AccessKeyNotRemovable` for the owner's key, which `setOwner` replaces. */
  readonly remove: (
    projectId: ProjectId,
    accessKeyId: string
  ) => Effect.Effect<void, AccessKeyNotFound | AccessKeyNotRemovable | StoreError>
  /** Forgets all remembered keys on all nodes. Call it after a project is removed with its keys. */
  readonly forget: Effect.Effect<void>
  /**
   * Returns project and role of the caller. A removed key stops working at once
   * on all nodes, and within 10 seconds on a node that the notice does not reach.
   */
  readonly authenticate: (
    key: Redacted.Redacted
  ) => Effect.Effect<Principal, UnknownAccessKey | AccessKeyExpired | StoreError>
}>()("@device-cloud/core/project/AccessKeys") {
  static readonly layer: Layer.Layer<AccessKeys, never, AccessKeyStore | Identifiers | NodeBus | Crypto.Crypto> = Layer
    .effect(AccessKeys, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(AccessKeyDraft)

/** Keys that are remembered. */
const capacity = 10_000
/** How long a removed key may still work on a node that the notice does not reach, milliseconds. */
const timeToLive = 10_000

/** The removed key; null: any key may be removed, for example with its project. */
const AccessKeysRemoved = NodeBus.channel(
  "project/access-keys",
  Schema.Struct({ accessKeyId: Schema.NullOr(Schema.String) })
)

const make = Effect.gen(function*() {
  const store = yield* AccessKeyStore
  const identifiers = yield* Identifiers
  const crypto = yield* Crypto.Crypto
  const channel = yield* AccessKeysRemoved

  const hashOf = (key: string) =>
    crypto.digest("SHA-256", new TextEncoder().encode(key)).pipe(Effect.map(Hex.encode), Effect.orDie)

  const known = yield* NodeCache.make({
    capacity,
    timeToLive,
    load: (ids: ReadonlyArray<string>) =>
      Effect.map(
        Effect.forEach(ids, store.find),
        (found) => new Map(found.flatMap(Option.toArray).map((key) => [key.id, key]))
      )
  })

  const forgetHere = (accessKeyId: string | null) =>
    Effect.sync(() => accessKeyId === null ? known.forgetAll() : known.forget(accessKeyId))

  /** Null: any key may be removed. */
  const forget = (accessKeyId: string | null) =>
    Effect.andThen(forgetHere(accessKeyId), channel.publish([{ accessKeyId }])).pipe(
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of access keys", error))
    )

  yield* channel.subscribe({ heard: ({ accessKeyId }) => forgetHere(accessKeyId), missed: forgetHere(null) })

  const setOwner = Effect.fn("AccessKeys.setOwner")(function*(redacted: Redacted.Redacted) {
    const key = Redacted.value(redacted)
    const id = accessKeyIdOf(key)
    if (id === undefined) return yield* new MalformedAccessKey()
    yield* store.replaceOwner({
      id,
      projectId: defaultProjectId,
      name: "owner",
      role: "owner",
      hash: yield* hashOf(key),
      createdAt: yield* Clock.currentTimeMillis,
      expiresAt: null
    })
    yield* forget(null)
  })

  const create = Effect.fn("AccessKeys.create")(function*(projectId: ProjectId, input: AccessKeyDraft) {
    const draft = yield* decodeDraft(input)
    const id = yield* identifiers.accessKeyId
    const key = `dck_${id}_${Base64Url.encode(yield* Effect.orDie(crypto.randomBytes(32)))}`
    const accessKey: AccessKey = {
      id,
      projectId,
      name: draft.name,
      role: draft.role,
      hash: yield* hashOf(key),
      createdAt: yield* Clock.currentTimeMillis,
      expiresAt: draft.expiresAt ?? null
    }
    if (!(yield* store.insert(accessKey))) return yield* new ProjectNotFound({ projectId })
    return { accessKey, key: Redacted.make(key) }
  })

  const remove = Effect.fn("AccessKeys.remove")(function*(projectId: ProjectId, accessKeyId: string) {
    const found = yield* store.find(accessKeyId)
    if (Option.isSome(found) && found.value.projectId === projectId && found.value.role === "owner") {
      return yield* new AccessKeyNotRemovable({ accessKeyId })
    }
    if (!(yield* store.remove(projectId, accessKeyId))) return yield* new AccessKeyNotFound({ accessKeyId })
    yield* forget(accessKeyId)
  })

  const authenticate = Effect.fnUntraced(function*(redacted: Redacted.Redacted) {
    const key = Redacted.value(redacted)
    const id = accessKeyIdOf(key)
    if (id === undefined) return yield* new UnknownAccessKey()
    const found = known.fresh(id) ?? (yield* known.get([id])).get(id)
    if (found === undefined || !equalInConstantTime(found.hash, yield* hashOf(key))) {
      return yield* new UnknownAccessKey()
    }
    const { expiresAt, projectId, role } = found
    if (expiresAt !== null && expiresAt <= (yield* Clock.currentTimeMillis)) {
      return yield* new AccessKeyExpired({ expiredAt: expiresAt })
    }
    return { accessKeyId: id, projectId, role }
  })

  return AccessKeys.of({ setOwner, create, list: store.list, remove, forget: forget(null), authenticate })
})
