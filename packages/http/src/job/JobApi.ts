/**
 * The routes of jobs (docs/api/jobs.md).
 */
import { DeviceId, JobDraft, JobStatus, JobTaskState } from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DateText, Envelope, EnvelopeOnly, Paged, pageQuery } from "../Envelope.ts"
import { ExpensiveRead } from "../middleware/ExpensiveRead.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import * as PathParams from "../PathParams.ts"
import { NoSuchProduct } from "../product/ProductFailures.ts"
import { QuotaExceeded } from "../project/ProjectFailures.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { JobStateForbids, NoSuchJob, NoSuchJobDevices } from "./JobFailures.ts"

const fields = {
  job_id: Schema.Int.annotate({ description: "Devices know it as taskId, in decimal digits" }),
  name: Schema.String,
  description: Schema.String,
  document: Schema.Record(Schema.String, Schema.Json),
  timeout: Schema.Int.annotate({ description: "Seconds from the first in_progress of a device; 0: any time" }),
  product_key: Schema.String.annotate({ description: "Empty: the devices were named" }),
  status: JobStatus.annotate({ description: "completed: no device has it before itself any more" }),
  created_at: DateText
}

/** A job. */
export const JobInfo = Schema.Struct(fields).annotate({ identifier: "Job" })

/** A job with how many devices are in which state. */
export const JobDetailInfo = Schema.Struct({
  ...fields,
  counts: Schema.Struct(
    Object.fromEntries(JobTaskState.literals.map((state) => [state, Schema.Int])) as Record<
      JobTaskState,
      typeof Schema.Int
    >
  )
}).annotate({ identifier: "JobDetail" })

/** A job on one device. */
export const JobDeviceInfo = Schema.Struct({
  device_id: Schema.String,
  state: JobTaskState,
  progress: Schema.Int.annotate({ description: "Percent, as the device says" }),
  details: Schema.Record(Schema.String, Schema.Json),
  created_at: DateText,
  updated_at: DateText
}).annotate({ identifier: "JobDevice" })

/** The group `jobs` of the typed client. */
export class JobApi extends HttpApiGroup.make("jobs").add(
  HttpApiEndpoint.post("createJob", "/jobs", {
    payload: toSnakeCase(JobDraft).annotate({
      examples: [{
        name: "Calibrate",
        document: { operation: "calibrate" },
        device_ids: [DeviceId.make("Yb1Qw5dQJ2fEm0XkqT7c")]
      }]
    }),
    success: Envelope(JobInfo),
    error: [NoSuchProduct, NoSuchJobDevices, QuotaExceeded]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Give devices something to do")
    .annotate(
      OpenApi.Description,
      "To those in `device_ids`, or to all that the product `product_key` has now. Devices that are not connected " +
        "hear of it when they come back."
    ),
  HttpApiEndpoint.get("listJobs", "/jobs", { query: pageQuery, success: Paged(JobInfo) })
    .middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the jobs of the project"),
  HttpApiEndpoint.get("getJob", "/jobs/:job_id", {
    params: PathParams.job,
    success: Envelope(JobDetailInfo),
    error: NoSuchJob
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "Read a job, and how many devices are in which state"),
  HttpApiEndpoint.get("listJobDevices", "/jobs/:job_id/devices", {
    params: PathParams.job,
    query: { ...pageQuery, state: Schema.optional(JobTaskState) },
    success: Paged(JobDeviceInfo),
    error: NoSuchJob
  }).middleware(ExpensiveRead).annotate(OpenApi.Summary, "List the devices of a job, and how far each is"),
  HttpApiEndpoint.post("cancelJob", "/jobs/:job_id/cancel", {
    params: PathParams.job,
    success: EnvelopeOnly,
    error: [NoSuchJob, JobStateForbids]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Cancel a job for the devices that have not ended it"),
  HttpApiEndpoint.delete("removeJob", "/jobs/:job_id", {
    params: PathParams.job,
    success: EnvelopeOnly,
    error: [NoSuchJob, JobStateForbids]
  }).annotate(OpenApi.Summary, "Remove a job that has ended")
).annotate(OpenApi.Title, "Jobs") {}
