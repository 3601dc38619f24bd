/**
 * The jobs of the project, and how far each is.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Badge, Bar, type Mood, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { NewJob } from "./NewJob.tsx"

export type JobData = Data<typeof api.jobs.getJob>
export type JobState = keyof JobData["counts"]

/** Each is read with its counts. */
const pageSize = 10

const Jobs = () => {
  const { jobs, shell } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = usePolledQuery(
    async (signal) => {
      const page = await api.jobs.listJobs({ query: { page: url.page, page_size: pageSize }, signal })
      const read = (id: number) => api.jobs.getJob({ params: { job_id: String(id) }, signal })
      return { ...page, results: await Promise.all(page.results.map(({ job_id }) => read(job_id))) }
    },
    [url.page],
    5
  )
  return (
    <Page
      title={shell.pages.jobs}
      lead={jobs.lead}
      actions={canWrite("jobs") && (
        <button type="button" class="button primary" onClick={() => setCreating(true)}>{jobs.create}</button>
      )}
    >
      <Listing query={query} empty={<Empty title={jobs.empty}>{jobs.emptyBody}</Empty>}>
        {(rows) => (
          <Table caption={jobs.caption} columns={columnsOf()} rows={rows} keyOf={({ job_id }) => String(job_id)} />
        )}
      </Listing>
      {isCreating && <NewJob onClose={() => setCreating(false)} />}
    </Page>
  )
}

const columnsOf = (): ReadonlyArray<Column<JobData>> => {
  const { common, jobs } = texts()
  return [
    { id: "id", title: jobs.id, kind: "tight", cell: ({ job_id }) => job_id },
    {
      id: "name",
      title: common.name,
      cell: ({ job_id, name }) => <a class="wrap" href={`/console/jobs/${job_id}`}>{name}</a>
    },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <JobStatus status={status} /> },
    { id: "progress", title: jobs.progress, cell: ({ counts }) => <JobBar counts={counts} /> },
    { id: "created", title: common.created, kind: "tight", cell: ({ created_at }) => <Time at={created_at} /> }
  ]
}

const statusMoods: Readonly<Record<string, Mood>> = { in_progress: "busy", completed: "good", cancelled: "plain" }

export const JobStatus = ({ status }: { readonly status: JobData["status"] }) => {
  const { jobs } = useTexts()
  return <Badge mood={statusMoods[status] ?? "plain"}>{jobs.statuses[status] ?? status}</Badge>
}

const stateMoods: Readonly<Record<string, Mood>> = {
  in_progress: "busy",
  succeeded: "good",
  failed: "bad",
  rejected: "bad",
  timed_out: "warn",
  cancelled: "plain"
}

export const StateBadge = ({ state }: { readonly state: JobState }) => {
  const { jobs } = useTexts()
  return <Badge mood={stateMoods[state] ?? "plain"}>{jobs.states[state] ?? state}</Badge>
}

/** The states of the devices; those that have not begun are left free. */
export const JobBar = ({ counts }: { readonly counts: JobData["counts"] }) => {
  const { jobs } = useTexts()
  const parts = Object.entries(counts).map(([state, count]) => ({
    title: jobs.states[state as JobState] ?? state,
    count,
    mood: stateMoods[state] ?? "free" as const
  }))
  return <Bar label={jobs.progress} parts={parts} />
}

export default Jobs
