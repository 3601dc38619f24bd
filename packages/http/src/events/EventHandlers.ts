/**
 * Handler of the stream of events.
 */
import { Context, Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import * as EventStreams from "./EventStreams.ts"

/** How many streams of events this server has at most. */
export const Limits = Context.Reference<EventStreams.EventStreamLimits>("@device-cloud/http/EventStreamLimits", {
  defaultValue: () => ({})
})

/** Implements the group `events`. */
export const layer = group(
  Api,
  "events",
  Effect.fnUntraced(function*(handlers) {
    const streams = yield* EventStreams.make(yield* Limits)
    return handlers.handleRaw(
      "streamEvents",
      ({ headers, query }) =>
        Effect.withFiber((fiber) =>
          Effect.gen(function*() {
            const { ended, projectId, scopes } = yield* CurrentPrincipal
            const listener = yield* streams.open({
              projectId,
              filter: {
                productKey: query.product_key,
                deviceId: query.device_id,
                types: query.type?.split(","),
                isOwnOnly: scopes.products !== undefined
              },
              // An empty one says that the client has had no event yet.
              lastEventId: (headers["last-event-id"] ?? query.last_event_id) || undefined
            })
            const end = Effect.sync(() => {
              // A client that does not read would hold the connection: it ends without being told.
              if (!listener.end()) fiber.interruptUnsafe()
            })
            yield* Effect.forkScoped(Effect.andThen(ended, end))
            return HttpServerResponse.stream(Stream.fromEffectRepeat(listener.next), {
              contentType: "text/event-stream",
              headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
            })
          })
        )
    )
  })
)
