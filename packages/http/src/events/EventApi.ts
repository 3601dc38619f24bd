/**
 * The stream of what happens in a project (docs/api/events.md).
 */
import { eventTypes } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import * as PathParams from "../PathParams.ts"

/** The types of events. */
export const EventType = Schema.Literals(Object.values(eventTypes))

/** The group `events` of the typed client. */
export class EventApi extends HttpApiGroup.make("events").add(
  HttpApiEndpoint.get("streamEvents", "/events", {
    query: {
      product_key: Schema.optional(PathParams.productKey.product_key),
      device_id: Schema.optional(PathParams.deviceId.device_id),
      type: Schema.optional(
        Schema.String.check(Schema.makeFilter(
          (text) => text.split(",").every((type) => Schema.is(EventType)(type)),
          { expected: `types separated by commas, of ${EventType.literals.join(", ")}` }
        )).annotate({ description: `${EventType.literals.join(", ")}; several are separated by commas` })
      ),
      last_event_id: Schema.optional(
        Schema.String.annotate({ description: "As the header, which counts more, for clients that cannot set one" })
      )
    },
    headers: {
      "last-event-id": Schema.optional(Schema.String.annotate({ description: "The stream goes on after this event" }))
    },
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" }))
  }).annotate(OpenApi.Summary, "Follow what happens, as server-sent events")
    .annotate(
      OpenApi.Description,
      "Each event has an `id`, the type as `event`, and `data`: `product_key`, `device_name`, `device_id`, `time` (Unix " +
        "milliseconds) and, by type, `status` and `version`; `properties` (value and time of each); `event_id`, " +
        "`event_time` and `value`; `message_id`, `code`, `message` and `data`; `task_id`, `module`, `version`, `status`, " +
        "`step` and `reason`; `action`; `scene_id`, `scene_name`, `execution_id`, `status` and `reason`. An event of a scene " +
        "that no device has fired names no device. With `Last-Event-ID`, what was " +
        "missed comes first. An event `gap` says that events are missing there."
    )
).annotate(OpenApi.Title, "Events") {}
