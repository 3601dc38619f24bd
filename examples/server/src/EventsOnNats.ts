/**
 * The events of all projects on NATS, if `NATS_URL` is set.
 */
import type { FeedReaderStore, FeedStore } from "@device-cloud/core"
import * as EventsNats from "@device-cloud/events-nats"
import { Effect, Layer, Option, Redacted } from "effect"
import { readFile } from "node:fs/promises"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"

/** Publishes while it lives. Fails if a file of the configuration cannot be read. */
export const layer = (
  { natsCaFile, natsCredentialsFile, natsUrl }: ServerConfig
): Layer.Layer<never, InvalidConfig, FeedStore | FeedReaderStore> =>
  Option.match(natsUrl, {
    onNone: () => Layer.empty,
    onSome: (url) =>
      Layer.unwrap(Effect.gen(function*() {
        const credentials = yield* read("NATS_CREDENTIALS_FILE", natsCredentialsFile)
        const ca = yield* read("NATS_CA_FILE", natsCaFile)
        return EventsNats.layer({
          url,
          credentials: credentials === undefined ? undefined : { file: Redacted.make(credentials) },
          tls: ca === undefined ? undefined : { ca }
        })
      }))
  })

const read = (variable: string, file: Option.Option<string>) =>
  Option.isNone(file) ? Effect.undefined : Effect.tryPromise({
    try: () => readFile(file.value, "utf8"),
    catch: (cause) => new InvalidConfig({ message: `${variable}: ${file.value} cannot be read (${String(cause)})` })
  })
