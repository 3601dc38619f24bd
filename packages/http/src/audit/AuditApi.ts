/**
 * The route of the audit log (docs/api/audit.md).
 */
import { Text } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { DateText, Envelope } from "../Envelope.ts"
import { RequiredRole } from "../middleware/Authorization.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import * as PathParams from "../PathParams.ts"
import { Rfc3339 } from "../project/ProjectApi.ts"

/** An entry of the audit log. */
export const AuditRecord = Schema.Struct({
  id: Schema.Int,
  time: DateText,
  project_id: Schema.String,
  key_id: Schema.String.annotate({ description: "The access key; empty: the server itself" }),
  key_name: Schema.String,
  action: Schema.String.annotate({ description: "The operation, as `operationId` in `/openapi.json`" }),
  resource_kind: Schema.String,
  resource_id: Schema.String,
  address: Schema.String.annotate({ description: "Where the request came from" }),
  result: Schema.Int.annotate({ description: "0: carried out; another: the code of the failure" }),
  request_id: Schema.String
}).annotate({ identifier: "AuditEntry" })

/** The place after an entry: its time and id. */
const Cursor = Schema.String.check(
  Schema.isPattern(/^\d{1,15}-\d{1,15}$/u, { expected: "the next_cursor of the page before" })
)

const query = {
  key_id: Schema.optional(Text(128)),
  action: Schema.optional(Text(128)),
  resource: Schema.optional(Text(128).annotate({ description: "The id of a resource" })),
  start: Schema.optional(Rfc3339.annotate({ description: "RFC 3339; entries from then on" })),
  end: Schema.optional(Rfc3339.annotate({ description: "RFC 3339; entries before then" })),
  project_id: Schema.optional(
    PathParams.projectId.project_id.annotate({ description: "For an owner; default: the project of the key" })
  ),
  limit: Schema.optional(
    PathParams.wholeNumber(1000, 1).annotate({ description: "1 to 1,000; default 100" })
  ),
  cursor: Schema.optional(Cursor.annotate({ description: "The `next_cursor` of the page before" })),
  format: Schema.optional(
    Schema.Literals(["json", "ndjson", "csv"]).annotate({
      description: "`ndjson` and `csv` stream all entries that the filters select"
    })
  )
}

/** The group `audit` of the typed client. */
export class AuditApi extends HttpApiGroup.make("audit").add(
  HttpApiEndpoint.get("listAuditEntries", "/audit", {
    query,
    success: [
      Envelope(Schema.Struct({
        results: Schema.Array(AuditRecord),
        next_cursor: Schema.String.annotate({ description: "Empty: there are no older entries" })
      })),
      Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" })),
      Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/csv" }))
    ]
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read the audit log, the newest entry first")
    .annotate(
      OpenApi.Description,
      "Who changed what, which secrets were read, which requests were refused. All given filters must hold."
    )
    .annotate(RequiredRole, "admin")
).annotate(OpenApi.Title, "Audit log") {}
