/**
 * NATS: the events of all projects, and what servers tell each other.
 */
import * as BusNats from "@device-cloud/bus-nats"
import type { FeedReaderStore, FeedStore, NodeBus } from "@device-cloud/core"
import * as EventsNats from "@device-cloud/events-nats"
import { Effect, Layer, Option, Redacted } from "effect"
import { X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { InvalidConfig, type ServerConfig } from "./ServerConfig.ts"

/** Publishes events while it lives. Fails if a file of the configuration cannot be read. */
export const layerEvents = (
  config: ServerConfig,
  url: string
): Layer.Layer<never, InvalidConfig, FeedStore | FeedReaderStore> =>
  Layer.unwrap(Effect.map(optionsOf(config), (options) => EventsNats.layer({ url, ...options })))

/** Takes the place of the bus of the storage. Fails as `layerEvents`. */
export const layerBus = (config: ServerConfig, url: string): Layer.Layer<NodeBus, InvalidConfig, NodeBus> =>
  Layer.unwrap(Effect.map(optionsOf(config), (options) => BusNats.layer({ url, ...options })))

const optionsOf = Effect.fnUntraced(function*({ natsCaFile, natsCredentialsFile }: ServerConfig) {
  const credentials = yield* read("NATS_CREDENTIALS_FILE", natsCredentialsFile, "credentials of NATS", isCredentials)
  const ca = yield* read("NATS_CA_FILE", natsCaFile, "certificates in PEM", isCertificates)
  return {
    credentials: credentials === undefined ? undefined : { file: Redacted.make(credentials) },
    tls: ca === undefined ? undefined : { ca }
  }
})

/** A token and a seed, each between lines of its own. */
const isCredentials = (text: string): boolean => (text.match(/-{3,}\r?\n.+\r?\n\s*-{3,}/g) ?? []).length >= 2

/** What is no certificate, Node.js would trust without a word, and reach no server. */
const isCertificates = (text: string): boolean => {
  try {
    return new X509Certificate(text).raw.length > 0
  } catch {
    return false
  }
}

const read = Effect.fnUntraced(function*(
  variable: string,
  file: Option.Option<string>,
  expected: string,
  isUsable: (text: string) => boolean
) {
  if (Option.isNone(file)) return undefined
  const text = yield* Effect.tryPromise({
    try: () => readFile(file.value, "utf8"),
    catch: (cause) => new InvalidConfig({ message: `${variable}: ${file.value} cannot be read (${String(cause)})` })
  })
  if (isUsable(text)) return text
  return yield* new InvalidConfig({ message: `${variable}: ${file.value} has no ${expected}` })
})
