/**
 * Handlers of the routes of traces.
 */
import { type PlacedEntry, type TracedReply, Traces } from "@device-cloud/core"
import { Effect, identity } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond } from "../Envelope.ts"
import { withIssues } from "../Failure.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import type { TraceEntry } from "./TraceApi.ts"

/** Implements the group `traces`. */
export const layer = group(
  Api,
  "traces",
  Effect.fnUntraced(function*(handlers) {
    const traces = yield* Traces
    return handlers.handleAll({
      startTrace: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(traces.start(projectId, params.device_id, payload.minutes), (until) => ({ until: dateText(until) }))
        ),
      readTrace: ({ params, query: { after, limit = 100 } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(traces.read(projectId, params.device_id, { after, limit }), ({ dropped, entries, until }) => ({
            until: dateText(until === 0 ? null : until),
            dropped,
            cursor: entries.at(-1)?.seq ?? after ?? 0,
            results: entries.map(entryRecord)
          }))
        ),
      stopTrace: ({ params }) => CurrentPrincipal.use(({ projectId }) => done(traces.stop(projectId, params.device_id)))
    })
  })
)

const entryRecord = ({ entry, seq }: PlacedEntry): typeof TraceEntry.Type => ({
  entry_id: seq,
  time: dateText(entry.at),
  kind: entry.kind,
  transport: entry.transport,
  gateway: entry.gateway === undefined
    ? null
    : { product_key: entry.gateway.productKey, device_name: entry.gateway.deviceName },
  node: entry.nodeId,
  address: entry.address ?? "",
  topic: entry.topic ?? "",
  payload: entry.payload ?? null,
  reply: entry.reply === undefined ? null : replyRecord(entry.reply),
  reason: entry.reason ?? ""
})

const replyRecord = ({ code, data, issues, message }: TracedReply) => ({
  code,
  message,
  data,
  issues: withIssues(issues, identity).data.issues
})
