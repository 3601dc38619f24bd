/**
 * Calls of the AMQP client as effects.
 */
import { Effect } from "effect"
import { BrokerUnreachable } from "../BrokerLink.ts"

/** Runs a call. Its failure does not show the URL. */
export const attempt = <A>(call: () => PromiseLike<A>): Effect.Effect<A, BrokerUnreachable> =>
  Effect.tryPromise({
    try: async () => await call(),
    catch: (cause) =>
      new BrokerUnreachable({ message: `RabbitMQ: ${cause instanceof Error ? cause.message : String(cause)}` })
  })

/**
 * Closes a channel or a connection. A broker that does not answer is not waited for
 * any longer: its connection ends with the next heartbeats.
 */
export const close = (open: { readonly close: () => PromiseLike<void> }): Effect.Effect<void> =>
  Effect.ignore(Effect.timeoutOption(attempt(() => open.close()), "1 second"))
