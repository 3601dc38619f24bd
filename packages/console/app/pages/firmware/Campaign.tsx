/**
 * One campaign: its progress over time, what failed and why, and each device.
 */
import { useLocation, useRoute } from "preact-iso"
import { useEffect, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import type { Item } from "../../api/Operations.ts"
import { canOperate } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { DeviceLink } from "../../parts/Devices.tsx"
import { ask } from "../../parts/Dialog.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Card, Page } from "../../parts/Page.tsx"
import { Plot } from "../../parts/Plot.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Ago, Bar } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tellFailure } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { useSoon } from "./FirmwareVersion.tsx"
import { partsOf, RecordStatus, type Summary, TaskStatus } from "./states.tsx"

type Task = Item<typeof api.ota.listUpgradeTasks>
type Device = Item<typeof api.ota.getUpgradeTask>

const Campaign = () => {
  const { firmware: { campaign, campaigns }, shell } = useTexts()
  const { params } = useRoute()
  const url = useUrl()
  const firmware_id = params["firmwareId"]!
  const task_id = params["taskId"]!
  const query = useQuery(async (signal) => {
    const [firmware, tasks] = await Promise.all([
      api.ota.getFirmware({ params: { firmware_id }, signal }),
      api.ota.listUpgradeTasks({ params: { firmware_id }, query: { task_id }, signal })
    ])
    return { firmware, task: tasks.results[0] }
  }, [firmware_id, task_id])
  const devices = useQuery(
    (signal) => api.ota.getUpgradeTask({ params: { task_id }, query: { page: url.page, page_size: 25 }, signal }),
    [task_id, url.page]
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
      actions={task !== undefined && canOperate.value && <Actions task={task} reload={query.reload} />}
    >
      <Shown query={query}>
        {({ task }) =>
          task !== undefined && (
            <div class="stack">
              <Card title={<TaskStatus status={task.status} />}>
                {task.stages.length > 1 && <p>{campaign.stage(task.stage, task.stages.length)}</p>}
                {task.reason !== "" && <p class="bad">{task.reason}</p>}
                <Bar label={campaigns.progress} parts={partsOf(task.summary)} />
                <p class="row">
                  {Object.entries(campaign.states).map(([state, title]) => (
                    <span key={state}>{title}: <strong>{formatNumber(task.summary[state as keyof Summary])}</strong></span>
                  ))}
                </p>
              </Card>
              <div class="halves">
                <Card title={campaign.over}><OverTime summary={task.summary} /></Card>
                <Card title={campaign.failures}><Failures taskId={task_id} failed={task.summary.failed} /></Card>
              </div>
            </div>
          )}
      </Shown>
      <Card title={campaign.devices}>
        <Listing query={devices} empty={<p class="soft">{campaign.noDevices}</p>}>
          {(rows) => (
            <Table
              caption={campaign.caption}
              columns={columnsOf(task_id, devices.reload)}
              rows={rows}
              keyOf={({ device_id }) => device_id}
            />
          )}
        </Listing>
      </Card>
    </Page>
  )
}

/** What can be done with a campaign in its state. */
const Actions = (
  { reload, task: { is_app_confirmed, need_app_confirm, stage, stages, status, summary, task_id } }: {
    readonly task: Task
    readonly reload: () => void
  }
) => {
  const { firmware: { campaign } } = useTexts()
  const { path, route } = useLocation()
  const params = { task_id: String(task_id) }
  const pending = formatNumber(summary.pending)
  const button = (action: string, title: string, body: string, run: () => Promise<unknown>, danger = false) => (
    <button
      type="button"
      class={danger ? "button danger" : "button"}
      onClick={() => ask({ title, body, action, danger, run: () => run().then(reload) })}
    >
      {action}
    </button>
  )
  if (status !== 0 && status !== 1) {
    return (
      <DeleteButton
        title={campaign.askRemove}
        body={campaign.askRemoveBody(formatNumber(Object.values(summary).reduce((sum, count) => sum + count, 0)))}
        remove={() => api.ota.cancelTask({ params })}
        onDeleted={() => route(path.split("/campaigns/")[0]!)}
      />
    )
  }
  return (
    <>
      {need_app_confirm && !is_app_confirmed &&
        button(campaign.confirm, campaign.askConfirm, campaign.askConfirmBody(pending), () =>
          api.ota.confirmUpgradeTask({ params }))}
      {stage < stages.length &&
        button(
          campaign.nextStage(stage + 1),
          campaign.askNextStage(stage + 1),
          campaign.askNextStageBody(stages[stage]!, pending),
          () => api.ota.openUpgradeStage({ params, payload: { stage: stage + 1 } })
        )}
      {button(
        campaign.cancel,
        campaign.askCancel,
        campaign.askCancelBody(pending, formatNumber(summary.upgrading)),
        () => api.ota.cancelUpgradeTask({ params, payload: { action: "cancel" } }),
        true
      )}
    </>
  )
}

/** The counts since the page was opened: the API keeps those of now. */
const OverTime = ({ summary }: { readonly summary: Summary }) => {
  const { firmware: { campaign } } = useTexts()
  const [points, setPoints] = useState<ReadonlyArray<{ readonly at: number; readonly summary: Summary }>>([])
  const [now, setNow] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 5000)
    return () => clearInterval(timer)
  }, [])
  useEffect(() => setPoints((points) => [...points.slice(-2000), { at: Date.now(), summary }]), [
    now,
    JSON.stringify(summary)
  ])
  const line = (state: keyof Summary) => ({
    title: campaign.states[state],
    values: points.map(({ summary }) => summary[state]),
    isStepped: true
  })
  return (
    <Plot
      label={campaign.over}
      height={200}
      times={points.map(({ at }) => at)}
      lines={[line("succeeded"), line("failed"), line("upgrading")]}
    />
  )
}

/** Why devices have failed, most often first. */
const Failures = ({ failed, taskId }: { readonly taskId: string; readonly failed: number }) => {
  const { firmware: { campaign } } = useTexts()
  const query = useQuery(async (signal) => {
    if (failed === 0) return { counted: 0, reasons: [] }
    const { results } = await api.ota.getUpgradeTask({ params: { task_id: taskId }, query: { page_size: 100 }, signal })
    const reasons = new Map<string, number>()
    for (const { reason, status } of results) {
      if (status === 4) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    }
    return { counted: results.length, reasons: [...reasons].sort(([, a], [, b]) => b - a) }
  }, [taskId, failed])
  return (
    <Shown query={query}>
      {({ counted, reasons }) =>
        reasons.length === 0 ? <p class="soft">{campaign.noFailures}</p> : (
          <>
            <ul class="stack tight">
              {reasons.map(([reason, count]) => (
                <li key={reason} class="row apart">
                  <span class="wrap">{reason}</span>
                  <strong>{formatNumber(count)}</strong>
                </li>
              ))}
            </ul>
            <p class="soft small">{campaign.sampled(formatNumber(counted))}</p>
          </>
        )}
    </Shown>
  )
}

const columnsOf = (task_id: string, reload: () => void): ReadonlyArray<Column<Device>> => {
  const { common, firmware: { campaign } } = texts()
  return [
    {
      id: "name",
      title: common.deviceName,
      cell: ({ device_id, device_name }) => <DeviceLink id={device_id} name={device_name} />
    },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <RecordStatus status={status} /> },
    { id: "step", title: campaign.step, kind: "number", cell: ({ step }) => step >= 0 ? `${step} %` : "" },
    { id: "runs", title: campaign.runs, cell: ({ version }) => version },
    { id: "reason", title: campaign.reason, cell: ({ reason }) => <span class="wrap">{reason}</span> },
    { id: "updated", title: campaign.updated, kind: "tight", cell: ({ updated_at }) => <Ago at={updated_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: ({ device_id, device_name, is_app_confirm, need_app_confirm, status }) => {
        const params = { task_id, device_id }
        const run = (promise: Promise<unknown>) => void promise.then(reload, tellFailure)
        return canOperate.value && status <= 2 && (
          <div class="row">
            {need_app_confirm && !is_app_confirm && (
              <button
                type="button"
                class="button small"
                onClick={() => run(api.ota.confirmDeviceUpgrade({ params }))}
              >
                {campaign.confirm}
              </button>
            )}
            <button
              type="button"
              class="button small danger"
              onClick={() =>
                ask({
                  title: campaign.askCancelDevice(device_name),
                  body: campaign.askCancelDeviceBody,
                  action: campaign.askCancelDeviceAction,
                  danger: true,
                  run: () => api.ota.cancelDeviceUpgrade({ params, payload: { action: "cancel" } }).then(reload)
                })}
            >
              {campaign.cancelDevice}
            </button>
          </div>
        )
      }
    }
  ]
}

export default Campaign
