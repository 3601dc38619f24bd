/**
 * Handlers of the routes of jobs.
 */
import { type Job, type JobDetail, Jobs, type JobTask } from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { JobDetailInfo, JobDeviceInfo, JobInfo } from "./JobApi.ts"

/** Implements the group `jobs`. */
export const layer = group(
  Api,
  "jobs",
  Effect.fnUntraced(function*(handlers) {
    const jobs = yield* Jobs
    return handlers.handleAll({
      createJob: ({ payload }) =>
        CurrentPrincipal.use(({ projectId }) => respond(jobs.create(projectId, toCamelCase(payload)), info)),
      listJobs: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) => respondPage(query, (page) => jobs.list(projectId, page), info)),
      getJob: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(jobs.get(projectId, params.job_id), detail)),
      listJobDevices: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => jobs.tasks(projectId, params.job_id, query.state, page), device)
        ),
      cancelJob: ({ params }) => CurrentPrincipal.use(({ projectId }) => done(jobs.cancel(projectId, params.job_id))),
      removeJob: ({ params }) => CurrentPrincipal.use(({ projectId }) => done(jobs.remove(projectId, params.job_id)))
    })
  })
)

const info = (job: Job): typeof JobInfo.Type => ({
  job_id: job.jobId,
  name: job.name,
  description: job.description,
  document: job.document,
  timeout: job.timeout,
  product_key: job.productKey ?? "",
  status: job.status,
  created_at: dateText(job.createdAt)
})

const detail = ({ counts, job }: JobDetail): typeof JobDetailInfo.Type => ({ ...info(job), counts })

const device = ({ createdAt, details, deviceId, progress, state, updatedAt }: JobTask): typeof JobDeviceInfo.Type => ({
  device_id: deviceId,
  state,
  progress,
  details,
  created_at: dateText(createdAt),
  updated_at: dateText(updatedAt)
})
