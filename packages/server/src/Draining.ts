/**
 * The end of a server that others take over from
 * (docs/decisions/0091-rolling-restarts.md).
 */
import { Nodes } from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import { Context, Effect, Layer } from "effect"
import type { ServerResponse } from "node:http"
import type { ServerConfig } from "./ServerConfig.ts"

/** The part of `DRAIN_SECONDS` in which a balancer finds out that the server is not ready any more. */
const noticePart = 1 / 3

export class Draining extends Context.Service<Draining, {
  /** Whether the server is about to stop. */
  readonly hasBegun: () => boolean
  /** Watches a response that the server has begun to make. */
  readonly watch: (response: ServerResponse) => void
  /**
   * Makes the server not ready, then ends the connections of devices in slices, and
   * last the streams of events, which have no end of their own.
   */
  readonly run: Effect.Effect<void, never, MqttServer | Nodes>
}>()("@device-cloud/server/Draining") {
  static readonly layer = ({ drainSeconds }: ServerConfig): Layer.Layer<Draining> =>
    Layer.sync(Draining, () => make(drainSeconds * 1000))
}

const make = (millis: number): Draining["Service"] => {
  let hasBegun = false
  const open = new Set<ServerResponse>()

  const run = Effect.gen(function*() {
    const broker = yield* MqttServer
    hasBegun = true
    yield* (yield* Nodes).drain
    yield* Effect.sleep(millis * noticePart)
    yield* broker.drain(millis * (1 - noticePart))
    for (const response of open) if (isStream(response)) response.destroy()
  })

  return {
    hasBegun: () => hasBegun,
    watch: (response) => {
      open.add(response)
      response.once("close", () => open.delete(response))
      // The client, or the balancer, sends its next request over another connection, to another server.
      if (hasBegun) response.setHeader("Connection", "close")
    },
    run
  }
}

/** Whether the response is a stream of events that has begun: a read of events that waits has no headers yet. */
const isStream = ({ headersSent, req }: ServerResponse): boolean =>
  headersSent && /\/events(?:\?|$)/.test(req.url ?? "")
