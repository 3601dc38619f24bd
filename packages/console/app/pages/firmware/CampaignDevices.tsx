/**
 * The devices of a campaign: all, or those in a status, or those that have failed for
 * a reason.
 */
import { useEffect, useRef } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data, Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import type { Query } from "../../api/useQuery.ts"
import { DeviceLink } from "../../parts/Devices.tsx"
import { ask } from "../../parts/Dialog.tsx"
import { SelectField } from "../../parts/Form.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Card } from "../../parts/Page.tsx"
import { Ago } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tellFailure } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { RecordStatus } from "./states.tsx"

type Device = Item<typeof api.ota.getUpgradeTask>

export const CampaignDevices = (
  { query, taskId }: { readonly query: Query<Data<typeof api.ota.getUpgradeTask>>; readonly taskId: string }
) => {
  const { firmware: { campaign } } = useTexts()
  const url = useUrl()
  const [status, failure] = [url.get("status"), url.get("failure")]
  const frame = useRef<HTMLDivElement>(null)
  const shown = useRef(`${status} ${failure}`)
  // Whoever chooses devices further up wants to see them.
  useEffect(() => {
    if (shown.current === `${status} ${failure}`) return
    shown.current = `${status} ${failure}`
    frame.current?.scrollIntoView({ block: "nearest" })
  }, [status, failure])
  return (
    <div ref={frame}>
      <Card title={campaign.devices}>
        {failure !== "" && (
          <div class="notice row apart">
            <span class="wrap">{campaign.failedFor} <strong>{failure}</strong></span>
            <button type="button" class="button small" onClick={() => url.set({ failure: "" })}>{campaign.showAll}</button>
          </div>
        )}
        {failure === "" && (
          <div class="filters">
            <SelectField
              label={campaign.filter}
              value={status}
              options={campaign.recordStates.map((title, code) => code === 0 ? ["", campaign.allStates] : [String(code), title])}
              onChange={(status) => url.set({ status })}
            />
          </div>
        )}
        <Listing query={query} empty={<p class="soft">{status === "" && failure === "" ? campaign.noDevices : campaign.noneFound}</p>}>
          {(rows) => (
            <Table
              caption={campaign.caption}
              columns={columnsOf(taskId, query.reload)}
              rows={rows}
              keyOf={({ device_id }) => device_id}
            />
          )}
        </Listing>
      </Card>
    </div>
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
        return canWrite("ota") && status <= 2 && (
          <div class="row">
            {need_app_confirm && !is_app_confirm && (
              <button
                type="button"
                class="button small"
                aria-label={`${campaign.confirm} ${device_name}`}
                onClick={() => run(api.ota.confirmDeviceUpgrade({ params }))}
              >
                {campaign.confirm}
              </button>
            )}
            <button
              type="button"
              class="button small danger"
              aria-label={`${campaign.cancelDevice} ${device_name}`}
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
