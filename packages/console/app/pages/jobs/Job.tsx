/**
 * One job: what devices have to do, and what became of each.
 */
import { useRoute } from "preact-iso"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { DeviceLink } from "../../parts/Devices.tsx"
import { ask } from "../../parts/Dialog.tsx"
import { SelectField } from "../../parts/Form.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Card, Facts, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Ago, Json, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { JobBar, type JobData, type JobState, JobStatus, StateBadge } from "./Jobs.tsx"

type JobDevice = Item<typeof api.jobs.listJobDevices>

const Job = () => {
  const { common, jobs, shell } = useTexts()
  const { params } = useRoute()
  const job_id = params["jobId"]!
  const query = usePolledQuery((signal) => api.jobs.getJob({ params: { job_id }, signal }), [job_id], 3)
  return (
    <Page
      title={query.data?.name ?? job_id}
      lead={query.data?.description}
      crumbs={[{ title: shell.pages.jobs, href: "/console/jobs" }]}
      actions={query.data !== undefined && canWrite("jobs") && <Actions job={query.data} reload={query.reload} />}
    >
      <div class="stack">
        <Shown query={query}>
          {({ counts, created_at, document, product_key, status, timeout }) => (
            <div class="halves">
              <Card title={<JobStatus status={status} />}>
                <JobBar counts={counts} />
                <p class="row">
                  {Object.entries(counts).filter(([, count]) => count > 0).map(([state, count]) => (
                    <span key={state}>
                      {jobs.states[state as JobState] ?? state}: <strong>{formatNumber(count)}</strong>
                    </span>
                  ))}
                </p>
              </Card>
              <Card>
                <Facts
                  facts={[
                    [
                      jobs.for,
                      product_key === ""
                        ? jobs.named
                        : <a href={`/console/products/${product_key}`}>{jobs.allOf} {product_key}</a>
                    ],
                    [jobs.document, <Json value={document} />],
                    [jobs.timeout, timeout === 0 ? jobs.anyTime : formatNumber(timeout)],
                    [common.created, <Time at={created_at} />]
                  ]}
                />
              </Card>
            </div>
          )}
        </Shown>
        {query.error?.isMissing !== true && <JobDevices jobId={job_id} />}
      </div>
    </Page>
  )
}

const JobDevices = ({ jobId }: { readonly jobId: string }) => {
  const { jobs } = useTexts()
  const url = useUrl()
  const state = url.get("state") as JobState | ""
  const query = usePolledQuery(
    (signal) =>
      api.jobs.listJobDevices({
        params: { job_id: jobId },
        query: { page: url.page, page_size: 25, ...state === "" ? {} : { state } },
        signal
      }),
    [jobId, state, url.page],
    3
  )
  return (
    <>
      <div class="filters">
        <SelectField
          label={jobs.state}
          value={state}
          options={[["", jobs.anyState], ...Object.entries(jobs.states) as ReadonlyArray<[JobState, string]>]}
          onChange={(state) => url.set({ state })}
        />
      </div>
      <Listing query={query} empty={<p class="soft">{jobs.noDevices}</p>}>
        {(rows) => (
          <Table
            caption={jobs.devicesCaption}
            columns={columnsOf()}
            rows={rows}
            keyOf={({ device_id }) => device_id}
          />
        )}
      </Listing>
    </>
  )
}

const columnsOf = (): ReadonlyArray<Column<JobDevice>> => {
  const { common, jobs } = texts()
  return [
    {
      id: "device",
      title: common.deviceId,
      cell: ({ device_id }) => <code><DeviceLink id={device_id} name={device_id} /></code>
    },
    { id: "state", title: jobs.state, kind: "tight", cell: ({ state }) => <StateBadge state={state} /> },
    { id: "progress", title: jobs.progress, kind: "number", cell: ({ progress }) => `${formatNumber(progress)} %` },
    {
      id: "details",
      title: jobs.details,
      cell: ({ details }) => Object.keys(details).length > 0 && <Json value={details} />
    },
    { id: "changed", title: common.changed, kind: "tight", cell: ({ updated_at }) => <Ago at={updated_at} /> }
  ]
}

/** A job that goes on can be cancelled, one that has ended deleted. */
const Actions = (
  { job: { counts, job_id, name, status }, reload }: { readonly job: JobData; readonly reload: () => void }
) => {
  const { jobs } = useTexts()
  const goTo = useGoTo()
  const params = { job_id: String(job_id) }
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const open = counts.queued + counts.sent + counts.in_progress
  if (status !== "in_progress") {
    return (
      <DeleteButton
        title={jobs.removeTitle(name)}
        body={jobs.removeBody(formatNumber(total))}
        remove={() => api.jobs.removeJob({ params })}
        onDeleted={() => goTo("/console/jobs")}
      />
    )
  }
  return (
    <button
      type="button"
      class="button danger"
      onClick={() =>
        ask({
          title: jobs.cancelTitle(name),
          body: jobs.cancelBody(formatNumber(open), formatNumber(total - open)),
          action: jobs.cancel,
          danger: true,
          run: async () => {
            await api.jobs.cancelJob({ params })
            tell(jobs.cancelled)
            reload()
          }
        })}
    >
      {jobs.cancel}
    </button>
  )
}

export default Job
