/**
 * The handler of the route of the audit log.
 */
import { type AuditEntry, AuditLog } from "@device-cloud/core"
import { DateTime, Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { group } from "../ApiHandlers.ts"
import * as Csv from "../Csv.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, respond } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { failWhenEnded } from "../middleware/Caller.ts"
import { endingWith } from "../middleware/EndingStream.ts"
import { RoleTooLow } from "../project/ProjectFailures.ts"
import { AuditRecord } from "./AuditApi.ts"

/** Implements the group `audit`. */
export const layer = group(
  Api,
  "audit",
  Effect.fnUntraced(function*(handlers) {
    const log = yield* AuditLog
    return handlers.handleAll({
      listAuditEntries: Effect.fnUntraced(function*({ query }) {
        const principal = yield* CurrentPrincipal
        const { cursor, end, format, limit = 100, project_id = principal.projectId, start } = query
        if (project_id !== principal.projectId && principal.role !== "owner") {
          return yield* Effect.fail(RoleTooLow.make({ message: "project_id: only an owner may name another project" }))
        }
        const filter = {
          keyId: query.key_id,
          action: query.action,
          resource: query.resource,
          start: start === undefined ? undefined : DateTime.toEpochMillis(start),
          end: end === undefined ? undefined : DateTime.toEpochMillis(end)
        }
        if (format === "ndjson" || format === "csv") {
          const { contentType, head, line } = formats[format]
          const lines = Stream.map(log.export(project_id, filter), (entry) => line(auditRecord(entry)))
          const text = Stream.encodeText(Stream.concat(Stream.fromIterable(head), lines))
          return HttpServerResponse.stream(
            yield* endingWith(text, failWhenEnded(principal)),
            { contentType, headers: { "content-disposition": `attachment; filename="audit.${format}"` } }
          )
        }
        // One entry more shows whether there are older ones.
        return yield* respond(
          log.read(project_id, filter, {
            limit: limit + 1,
            after: cursor === undefined ? undefined : cursorOf(cursor)
          }),
          (entries) => {
            const results = entries.slice(0, limit)
            const last = entries.length > limit ? results.at(-1) : undefined
            return { results: results.map(auditRecord), next_cursor: last === undefined ? "" : `${last.at}-${last.id}` }
          }
        )
      })
    })
  })
)

const cursorOf = (text: string) => {
  const [at, id] = text.split("-").map(Number) as [number, number]
  return { at, id }
}

const auditRecord = (entry: AuditEntry): typeof AuditRecord.Type => ({
  id: entry.id,
  time: dateText(entry.at),
  project_id: entry.projectId,
  key_id: entry.keyId,
  key_name: entry.keyName,
  action: entry.action,
  resource_kind: entry.resource.kind,
  resource_id: entry.resource.id,
  address: entry.address,
  result: entry.result,
  request_id: entry.requestId
})

const columns = Object.keys(AuditRecord.fields) as ReadonlyArray<keyof typeof AuditRecord.Type>

const formats = {
  ndjson: {
    contentType: "application/x-ndjson",
    head: [],
    line: (record: typeof AuditRecord.Type) => JSON.stringify(record) + "\n"
  },
  csv: {
    contentType: Csv.contentType,
    head: [Csv.line(columns)],
    line: (record: typeof AuditRecord.Type) => Csv.line(columns.map((column) => Csv.textCell(String(record[column]))))
  }
} as const
