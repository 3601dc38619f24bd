/**
 * The keys with which the webhooks of projects are signed.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Identifiers } from "../../kernel/Identifiers.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { type ProjectId, ProjectNotFound } from "../../project/Project.ts"
import { overlapMillis, type WebhookKeys } from "./Webhook.ts"
import { WebhookKeyStore } from "./WebhookKeyStore.ts"

export class WebhookSigning extends Context.Service<WebhookSigning, {
  /** Returns the keys of the project. Makes them when they are first asked for. */
  readonly keys: (projectId: ProjectId) => Effect.Effect<WebhookKeys, ProjectNotFound | StoreError>
  /** Makes a new key and returns the keys. The key before signs as well for a day. */
  readonly rotate: (projectId: ProjectId) => Effect.Effect<WebhookKeys, ProjectNotFound | StoreError>
}>()("@device-cloud/core/scene/execution/WebhookSigning") {
  static readonly layer: Layer.Layer<WebhookSigning, never, WebhookKeyStore | Identifiers> = Layer.effect(
    WebhookSigning,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function*() {
  const store = yield* WebhookKeyStore
  const identifiers = yield* Identifiers

  /** Makes the keys that follow those before; undefined: somebody else was faster. */
  const replace = Effect.fnUntraced(function*(projectId: ProjectId, before: WebhookKeys | undefined) {
    const createdAt = Math.max(yield* Clock.currentTimeMillis, (before?.createdAt ?? 0) + 1)
    const keys: WebhookKeys = {
      current: yield* identifiers.webhookKey,
      createdAt,
      previous: before === undefined ? null : { key: before.current, until: createdAt + overlapMillis }
    }
    const outcome = yield* store.put(projectId, before?.createdAt ?? null, keys)
    if (outcome === "no-project") return yield* new ProjectNotFound({ projectId })
    return outcome === "stored" ? keys : undefined
  })

  const keys = Effect.fn("WebhookSigning.keys")(function*(projectId: ProjectId) {
    while (true) {
      const stored = yield* store.get(projectId)
      if (Option.isSome(stored)) return stored.value
      const made = yield* replace(projectId, undefined)
      if (made !== undefined) return made
    }
  })

  const rotate = Effect.fn("WebhookSigning.rotate")(function*(projectId: ProjectId) {
    while (true) {
      const rotated = yield* replace(projectId, yield* keys(projectId))
      if (rotated !== undefined) return rotated
    }
  })

  return WebhookSigning.of({ keys, rotate })
})
