/**
 * The keys of webhooks in memory.
 */
import { WebhookKeyStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

const make = Effect.gen(function*() {
  const { projects, webhookKeys } = yield* Tables

  return WebhookKeyStore.of({
    get: (projectId) => Effect.sync(() => Option.fromUndefinedOr(webhookKeys.get(projectId))),
    put: (projectId, before, keys) =>
      Effect.sync(() => {
        if (before === null && !projects.has(projectId)) return "no-project"
        if ((webhookKeys.get(projectId)?.createdAt ?? null) !== before) return "changed"
        webhookKeys.set(projectId, keys)
        return "stored"
      })
  })
})

export const layer: Layer.Layer<WebhookKeyStore, never, Tables> = Layer.effect(WebhookKeyStore, make)
