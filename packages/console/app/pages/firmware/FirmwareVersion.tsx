/**
 * One firmware: its verification and its campaigns.
 */
import { useRoute } from "preact-iso"
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import type { Data, Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Counted } from "../../parts/Dialog.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Card, Facts, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, Bar, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { CampaignWizard } from "./CampaignWizard.tsx"
import { FirmwareStatus, sizeOf } from "./Firmware.tsx"
import { partsOf, TaskStatus } from "./states.tsx"
import { Verification } from "./Verification.tsx"

type Task = Item<typeof api.ota.listUpgradeTasks>

const FirmwareVersion = () => {
  const { firmware, shell } = useTexts()
  const { params } = useRoute()
  const goTo = useGoTo()
  const firmware_id = params["firmwareId"]!
  const query = useQuery((signal) => api.ota.getFirmware({ params: { firmware_id }, signal }), [firmware_id])
  const name = query.data === undefined ? firmware_id : `${query.data.name} ${query.data.version}`
  return (
    <Page
      title={name}
      crumbs={[{ title: shell.pages.firmware, href: "/console/firmware" }]}
      actions={query.data !== undefined && canWrite("ota") && (
        <DeleteButton
          title={firmware.removeTitle(name)}
          body={
            <Counted
              read={(signal) => api.ota.listUpgradeTasks({ params: { firmware_id }, query: { page_size: 1 }, signal })}
            >
              {({ total }) => firmware.removeBody(formatNumber(total))}
            </Counted>
          }
          remove={() => api.ota.deleteFirmware({ params: { firmware_id } })}
          onDeleted={() => goTo("/console/firmware")}
        />
      )}
    >
      <Shown query={query}>
        {(data) => (
          <div class="stack">
            <div class="halves">
              <About firmware={data} />
              <Verification firmware={data} reload={query.reload} />
            </div>
            <Campaigns firmware={data} />
          </div>
        )}
      </Shown>
    </Page>
  )
}

const About = ({ firmware: data }: { readonly firmware: Data<typeof api.ota.getFirmware> }) => {
  const { common, firmware } = useTexts()
  return (
    <Card title={firmware.version}>
      <Facts
        facts={[
          [firmware.version, data.version],
          [firmware.module, data.module],
          [common.productLabel, <a href={`/console/products/${data.product_key}`}>{data.product_name}</a>],
          [common.status, <FirmwareStatus status={data.status} />],
          [firmware.size, sizeOf(data.size)],
          [firmware.hash, <code class="wrap">{data.hash}</code>],
          [firmware.sha256, data.sha256 === "" ? undefined : <code class="wrap">{data.sha256}</code>],
          [firmware.signature, data.signature === "" ? common.none : <Badge mood="good">{firmware.signed}</Badge>],
          [firmware.remark, data.remark || undefined],
          [common.created, <Time at={data.created_at} />]
        ]}
      />
    </Card>
  )
}

const Campaigns = ({ firmware: data }: { readonly firmware: Data<typeof api.ota.getFirmware> }) => {
  const { firmware: { campaigns } } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const params = { firmware_id: String(data.id) }
  const query = useQuery(
    (signal) => api.ota.listUpgradeTasks({ params, query: { page: url.page, page_size: 10 }, signal }),
    [data.id, url.page]
  )
  useLive({ product_key: data.product_key, types: ["upgrade"] }, useSoon(query.reload))
  return (
    <Card
      title={campaigns.title}
      actions={canWrite("ota") && (
        <button type="button" class="button primary" onClick={() => setCreating(true)}>{campaigns.create}</button>
      )}
    >
      <Listing query={query} empty={<p class="soft">{campaigns.none}</p>}>
        {(rows) => (
          <Table
            caption={campaigns.caption}
            columns={columnsOf(data.id)}
            rows={rows}
            keyOf={({ task_id }) => String(task_id)}
          />
        )}
      </Listing>
      {isCreating && <CampaignWizard firmware={data} onClose={() => setCreating(false)} />}
    </Card>
  )
}

const columnsOf = (firmwareId: number): ReadonlyArray<Column<Task>> => {
  const { common, firmware: { campaigns } } = texts()
  return [
    {
      id: "id",
      title: campaigns.id,
      kind: "tight",
      cell: ({ task_id }) => <a href={`/console/firmware/${firmwareId}/campaigns/${task_id}`}>{task_id}</a>
    },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <TaskStatus status={status} /> },
    {
      id: "progress",
      title: campaigns.progress,
      cell: ({ reason, summary }) =>
        reason === "" ? <Bar label={campaigns.progress} parts={partsOf(summary)} /> : <span class="bad">{reason}</span>
    },
    { id: "created", title: common.created, cell: ({ created_at }) => <Time at={created_at} /> }
  ]
}

/** Calls at most once a second, however many events come. */
export const useSoon = (call: () => void): () => void => {
  const [timer] = useState<{ id?: ReturnType<typeof setTimeout> }>({})
  return () => {
    if (timer.id !== undefined) return
    timer.id = setTimeout(() => {
      delete timer.id
      call()
    }, 1000)
  }
}

export default FirmwareVersion
