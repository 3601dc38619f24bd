/**
 * Failures of the routes of jobs.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NoSuchJob = failure("NoSuchJob", Code.noSuchJob, "There is no such job")

export const NoSuchJobDevices = failure("NoSuchJobDevices", Code.noSuchDevice, "Some of the devices do not exist")

export const JobStateForbids = failure(
  "JobStateForbids",
  Code.stateForbids,
  "The job has ended and cannot be cancelled, or has not ended and cannot be removed"
)

/** Names in one message. */
const shownNames = 10

/** From the errors of the domain. */
export const jobFailures = {
  JobNotFound: ({ jobId }: Core.JobNotFound) => NoSuchJob.make({ message: `There is no job ${jobId}` }),
  JobDevicesNotFound: ({ deviceIds }: Core.JobDevicesNotFound) =>
    NoSuchJobDevices.make({
      message: `device_ids: ${deviceIds.length} of them do not exist: ${deviceIds.slice(0, shownNames).join(", ")}`
    }),
  JobStateForbids: ({ jobId, status }: Core.JobStateForbids) =>
    JobStateForbids.make({
      message: status === "in_progress"
        ? `Job ${jobId} is in progress; cancel it before you remove it`
        : `Job ${jobId} is ${status}`
    })
}
