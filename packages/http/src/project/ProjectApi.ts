/**
 * The routes of projects and access keys (docs/api/projects.md).
 */
import { AccessKeyDraft, KeyScopes, ProjectDraft, ProjectId, Role, Text } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { RequiredRole } from "../middleware/Authorization.ts"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import * as PathParams from "../PathParams.ts"
import {
  AccessKeyNotRemovable,
  NoSuchAccessKey,
  NoSuchProject,
  ProjectNotRemovable,
  QuotaExceeded
} from "./ProjectFailures.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"

/** A project. */
export const ProjectRecord = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  created_at: DateText
}).annotate({ identifier: "Project" })

const accessKey = {
  id: Schema.String,
  project_id: Schema.String,
  name: Schema.String,
  role: Role,
  scopes: KeyScopes.annotate({ description: "An absent list narrows nothing" }),
  addresses: Schema.Array(Schema.String).annotate({ description: "Empty: from everywhere" }),
  created_by: Schema.String.annotate({ description: "The id of the key that created this one; empty: none did" }),
  created_at: DateText,
  last_used_at: DateText,
  expires_at: DateText,
  expires_soon: Schema.Boolean.annotate({ description: "Whether it ends within two weeks, or has ended" }),
  expires_in_days: Schema.NullOr(Schema.Int).annotate({ description: "Whole days left; null: it does not expire" })
}

/** An access key without the key itself. */
export const AccessKeyRecord = Schema.Struct(accessKey).annotate({ identifier: "AccessKey" })

/** A new access key with the key itself: no other response shows it. */
export const CreatedAccessKey = Schema.Struct({ ...accessKey, key: Schema.String })

const expected = "a date and time as in RFC 3339, such as 2030-01-31T12:00:00+00:00"

/** Whether a calendar has the date and a clock the time. `Date` takes February 30 for a day in March. */
const isOfCalendar = (text: string): boolean => {
  const [written, at] = [`${text.slice(0, 19)}Z`, text].map((date) => new Date(date.toUpperCase()))
  if (Number.isNaN(written!.getTime()) || Number.isNaN(at!.getTime())) return false
  return written!.toISOString().startsWith(text.slice(0, 19).toUpperCase()) && /^\d{4}-/.test(at!.toISOString())
}

/** A date and time of the years 0000 to 9999, also in UTC, with an offset. */
export const Rfc3339 = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i, { expected }).abort(),
  Schema.makeFilter(isOfCalendar, { expected })
).pipe(Schema.decodeTo(Schema.DateTimeUtcFromString))

const CreateAccessKey = Schema.Struct({
  name: AccessKeyDraft.fields.name,
  role: AccessKeyDraft.fields.role,
  expires_at: Schema.optional(Rfc3339.annotate({ description: "RFC 3339; default: as the creator's" })),
  scopes: AccessKeyDraft.fields.scopes,
  addresses: AccessKeyDraft.fields.addresses,
  project_id: Schema.optional(
    Text(128).pipe(Schema.decodeTo(ProjectId)).annotate({
      description: "For an owner; default: the project of the key"
    })
  )
})

/** The group `projects` of the typed client. */
export class ProjectApi extends HttpApiGroup.make("projects").add(
  HttpApiEndpoint.post("createProject", "/projects", { payload: ProjectDraft, success: Envelope(ProjectRecord) })
    .middleware(IdempotencyMiddleware)
    .annotate(OpenApi.Summary, "Create a project")
    .annotate(RequiredRole, "owner"),
  HttpApiEndpoint.get("listProjects", "/projects", { query: pageQuery, success: Paged(ProjectRecord) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List all projects")
    .annotate(RequiredRole, "owner"),
  HttpApiEndpoint.get("getProject", "/projects/:project_id", {
    params: PathParams.projectId,
    success: Envelope(ProjectRecord),
    error: NoSuchProject
  }).annotate(OpenApi.Summary, "Read a project").annotate(RequiredRole, "owner"),
  HttpApiEndpoint.delete("deleteProject", "/projects/:project_id", {
    params: PathParams.projectId,
    success: EnvelopeOnly,
    error: [NoSuchProject, ProjectNotRemovable]
  }).annotate(OpenApi.Summary, "Delete a project that has no products, with its access keys")
    .annotate(RequiredRole, "owner"),
  HttpApiEndpoint.post("createAccessKey", "/access-keys", {
    payload: CreateAccessKey,
    success: Envelope(CreatedAccessKey),
    error: [NoSuchProject, QuotaExceeded]
  }).annotate(OpenApi.Summary, "Create an access key")
    .annotate(OpenApi.Description, "Only this response shows the key.")
    .annotate(RequiredRole, "admin"),
  HttpApiEndpoint.get("listAccessKeys", "/access-keys", { query: pageQuery, success: Paged(AccessKeyRecord) })
    .middleware(ExpensiveRead)
    .annotate(OpenApi.Summary, "List the access keys of the project")
    .annotate(RequiredRole, "admin"),
  HttpApiEndpoint.delete("deleteAccessKey", "/access-keys/:id", {
    params: PathParams.accessKeyId,
    query: {
      cascade: Schema.optional(
        Schema.Literals(["true", "false"]).annotate({
          description: "Also delete all keys that come from it; for an owner, also if it is gone itself"
        })
      )
    },
    success: EnvelopeOnly,
    error: [NoSuchAccessKey, AccessKeyNotRemovable]
  }).annotate(OpenApi.Summary, "Delete an access key").annotate(RequiredRole, "admin")
).annotate(OpenApi.Title, "Projects and access keys") {}
