/**
 * One campaign: its progress over time, what failed and why, and each device.
 */
import { useLocation, useRoute } from "preact-iso"
import { api, nothingNamed } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Card, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Bar } from "../../parts/Small.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, useTexts } from "../../text/text.ts"
import { CampaignActions } from "./CampaignActions.tsx"
import { CampaignDevices } from "./CampaignDevices.tsx"
import { CampaignFailures } from "./CampaignFailures.tsx"
import { CampaignProgress } from "./CampaignProgress.tsx"
import "./firmware.css"
import { useSoon } from "./FirmwareVersion.tsx"
import { partsOf, type Summary, TaskStatus } from "./states.tsx"

const Campaign = () => {
  const { firmware: { campaign, campaigns }, shell } = useTexts()
  const { params } = useRoute()
  const { path } = useLocation()
  const url = useUrl()
  const [status, failure] = [url.get("status"), url.get("failure")]
  const firmware_id = params["firmwareId"]!
  const task_id = params["taskId"]!
  const query = useQuery(async (signal) => {
    const [firmware, tasks] = await Promise.all([
      api.ota.getFirmware({ params: { firmware_id }, signal }),
      api.ota.listUpgradeTasks({ params: { firmware_id }, query: { task_id }, signal })
    ])
    // It may be one of another firmware.
    const [task] = tasks.results
    if (task === undefined) throw nothingNamed(task_id)
    return { firmware, task }
  }, [firmware_id, task_id])
  const devices = useQuery(
    (signal) =>
      api.ota.getUpgradeTask({
        params: { task_id },
        query: {
          page: url.page,
          page_size: 25,
          ...failure !== "" ? { failure } : /^[1-5]$/.test(status) ? { status: status as "1" } : {}
        },
        signal
      }),
    [task_id, url.page, status, failure]
  )
  const soon = useSoon(() => {
    query.reload()
    devices.reload()
  })
  useLive({ types: ["upgrade"] }, (event) => {
    if (String(event["task_id"]) === task_id) soon()
  })
  const { firmware, task } = query.data ?? {}
  return (
    <Page
      title={`${campaigns.id} ${task_id}`}
      lead={firmware === undefined ? undefined : campaign.lead(firmware.name, firmware.version)}
      crumbs={[
        { title: shell.pages.firmware, href: "/console/firmware" },
        {
          title: firmware === undefined ? firmware_id : `${firmware.name} ${firmware.version}`,
          href: `/console/firmware/${firmware_id}`
        }
      ]}
      actions={task !== undefined && canWrite("ota") && (
        <CampaignActions firmwareId={firmware_id} task={task} reload={query.reload} />
      )}
    >
      <div class="stack">
        <Shown query={query}>
          {({ task }) => (
            <>
              <Card title={<TaskStatus status={task.status} />}>
                {task.stages.length > 1 && <p>{campaign.stage(task.stage, task.stages.length)}</p>}
                {task.reason !== "" && <p class="bad">{task.reason}</p>}
                <Bar label={campaigns.progress} parts={partsOf(task.summary)} />
                <p class="row">
                  {Object.entries(campaign.states).map(([state, title], place) => (
                    <a key={state} href={`${path}?status=${place + 1}`}>
                      {title}: <strong>{formatNumber(task.summary[state as keyof Summary])}</strong>
                    </a>
                  ))}
                </p>
              </Card>
              <div class="halves">
                <Card title={campaign.over}><CampaignProgress taskId={task_id} summary={task.summary} /></Card>
                <Card title={campaign.failures}>
                  <CampaignFailures
                    taskId={task_id}
                    failed={task.summary.failed}
                    href={(reason) => `${path}?${new URLSearchParams({ failure: reason })}`}
                  />
                </Card>
              </div>
            </>
          )}
        </Shown>
        {query.error?.isMissing !== true && <CampaignDevices taskId={task_id} query={devices} />}
      </div>
    </Page>
  )
}

export default Campaign
