/**
 * Browser sessions in memory.
 */
import { BrowserSessionStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

/** Goes with `AccessKeyStore`: it refuses sessions of keys that its tables do not have. */
export const layer: Layer.Layer<BrowserSessionStore, never, Tables> = Layer.effect(
  BrowserSessionStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ accessKeys, browserSessions }: Tables["Service"]) =>
  BrowserSessionStore.of({
    insert: (session, limit) =>
      Effect.sync(() => {
        const { accessKeyId, hash } = session
        if (!accessKeys.has(accessKeyId)) return false
        browserSessions.set(hash, session)
        const ofKey = [...browserSessions.values()].filter((other) => other.accessKeyId === accessKeyId)
        // The sort is stable: of sessions of one instant, the one that was stored later stays.
        for (const { hash } of ofKey.sort((a, b) => a.createdAt - b.createdAt).slice(0, -limit)) {
          browserSessions.delete(hash)
        }
        return true
      }),
    find: (hash) => Effect.sync(() => Option.fromUndefinedOr(browserSessions.get(hash))),
    remove: (hash) => Effect.sync(() => browserSessions.delete(hash)),
    prune: ({ before, limit }) =>
      Effect.sync(() => {
        const ended = [...browserSessions.values()].filter(({ expiresAt }) => expiresAt < before).slice(0, limit)
        for (const { hash } of ended) browserSessions.delete(hash)
        return ended.length
      })
  })
