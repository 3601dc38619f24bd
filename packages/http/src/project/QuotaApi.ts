/**
 * The routes of quotas (docs/api/quotas.md).
 */
import { QuotaChange, QuotaLimits } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Envelope } from "../Envelope.ts"
import { RequiredRole } from "../middleware/Authorization.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { NoSuchProject } from "./ProjectFailures.ts"

/** The limits of a project, and what it has. */
export const QuotaRecord = Schema.Struct({
  limits: toSnakeCase(QuotaLimits),
  used: Schema.Struct({
    products: Schema.Int,
    devices: Schema.Int,
    device_groups: Schema.Int,
    access_keys: Schema.Int,
    scenes: Schema.Int,
    jobs: Schema.Int,
    subscriptions: Schema.Int,
    object_bytes: Schema.Int
  })
}).annotate({ identifier: "Quotas" })

/** The group `quotas` of the typed client. */
export class QuotaApi extends HttpApiGroup.make("quotas").add(
  HttpApiEndpoint.get("getOwnQuotas", "/quotas", { success: Envelope(QuotaRecord), error: NoSuchProject })
    .annotate(OpenApi.Summary, "Read the quotas of the project"),
  HttpApiEndpoint.get("getQuotas", "/projects/:project_id/quotas", {
    params: PathParams.projectId,
    success: Envelope(QuotaRecord),
    error: NoSuchProject
  }).annotate(OpenApi.Summary, "Read the quotas of a project")
    .annotate(OpenApi.Description, "An owner reads those of any project, all others those of their own."),
  HttpApiEndpoint.put("setQuotas", "/projects/:project_id/quotas", {
    params: PathParams.projectId,
    payload: toSnakeCase(QuotaChange).annotate({ examples: [{ devices: 50_000, products: null }] }),
    success: Envelope(QuotaRecord),
    error: NoSuchProject
  }).annotate(OpenApi.Summary, "Set quotas of a project")
    .annotate(OpenApi.Description, "What the body leaves out stays; null sets the default again.")
    .annotate(RequiredRole, "owner")
).annotate(OpenApi.Title, "Quotas") {}
