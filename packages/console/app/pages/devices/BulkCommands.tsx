/**
 * Commands to many devices, and what became of each.
 */
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { ask, Counted } from "../../parts/Dialog.tsx"
import { DeviceLink } from "../../parts/Devices.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Card, Empty } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, Bar, type Mood, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"

type BulkCommand = Item<typeof api.bulkCommands.listBulkCommands>
type BulkDevice = Item<typeof api.bulkCommands.listBulkCommandDevices>

export const BulkCommands = () => {
  const chosen = useUrl().get("command")
  return chosen === "" ? <BulkList /> : <BulkDevices key={chosen} id={chosen} />
}

const BulkList = () => {
  const { devices } = useTexts()
  const url = useUrl()
  const query = usePolledQuery(
    (signal) => api.bulkCommands.listBulkCommands({ query: { page: url.page, page_size: 10 }, signal }),
    [url.page],
    5
  )
  return (
    <Listing query={query} empty={<Empty title={devices.bulk.empty}>{devices.bulk.emptyBody}</Empty>}>
      {(rows) => (
        <Table
          caption={devices.bulk.caption}
          columns={columnsOf(query.reload)}
          rows={rows}
          keyOf={({ bulk_id }) => String(bulk_id)}
        />
      )}
    </Listing>
  )
}

const columnsOf = (reload: () => void): ReadonlyArray<Column<BulkCommand>> => {
  const { common, devices } = texts()
  return [
    {
      id: "id",
      title: devices.bulk.id,
      kind: "tight",
      cell: ({ bulk_id }) => <a href={`/console/devices?view=bulk&command=${bulk_id}`}>{bulk_id}</a>
    },
    {
      id: "what",
      title: devices.bulk.what,
      cell: ({ params, service_id }) => (
        <span class="wrap">
          {service_id === "" ? devices.setProperties : service_id} <code>{JSON.stringify(params)}</code>
        </span>
      )
    },
    { id: "devices", title: devices.batch.devices, kind: "number", cell: ({ total }) => formatNumber(total) },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <Badge mood={status === "running" ? "busy" : "plain"}>{devices.bulk.statuses[status] ?? status}</Badge> },
    { id: "created", title: common.created, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: ({ bulk_id, status }) =>
        canWrite("bulkCommands") && status !== "cancelled" && (
          <button
            type="button"
            class="button small danger"
            onClick={() =>
              ask({
                title: devices.bulk.askCancel(bulk_id),
                body: (
                  <Counted
                    read={(signal) => api.bulkCommands.getBulkCommand({ params: { bulk_id: String(bulk_id) }, signal })}
                  >
                    {({ counts: { pending = 0, queued = 0 } }) =>
                      devices.bulk.askCancelBody(formatNumber(pending), formatNumber(queued))}
                  </Counted>
                ),
                action: devices.bulk.cancel,
                danger: true,
                run: async () => {
                  await api.bulkCommands.cancelBulkCommand({ params: { bulk_id: String(bulk_id) } })
                  tell(common.saved)
                  reload()
                }
              })}
          >
            {devices.bulk.cancel}
          </button>
        )
    }
  ]
}

const BulkDevices = ({ id }: { readonly id: string }) => {
  const { devices } = useTexts()
  const url = useUrl()
  const params = { bulk_id: id }
  const command = usePolledQuery((signal) => api.bulkCommands.getBulkCommand({ params, signal }), [id], 3)
  const list = usePolledQuery(
    (signal) => api.bulkCommands.listBulkCommandDevices({ params, query: { page: url.page, page_size: 25 }, signal }),
    [id, url.page],
    3
  )
  return (
    <Card
      title={devices.bulk.devicesCaption}
      actions={<a class="button small" href="/console/devices?view=bulk">{devices.bulk.toAll}</a>}
    >
      <Shown query={command}>
        {({ counts }) => (
          <Bar
            label={devices.bulk.progress}
            parts={Object.entries(counts).map(([state, count]) => ({ title: devices.bulk.statuses[state] ?? state, count, mood: moodOf(state) }))}
          />
        )}
      </Shown>
      <Listing query={list} empty={<p class="soft">{devices.bulk.noDevices}</p>}>
        {(rows) => (
          <Table
            caption={devices.bulk.devicesCaption}
            columns={deviceColumns()}
            rows={rows}
            keyOf={({ device_id }) => device_id}
          />
        )}
      </Listing>
    </Card>
  )
}

const deviceColumns = (): ReadonlyArray<Column<BulkDevice>> => {
  const { common, devices } = texts()
  return [
    { id: "name", title: common.deviceName, cell: (device) => <DeviceLink id={device.device_id} name={device.device_name} /> },
    {
      id: "state",
      title: devices.bulk.state,
      kind: "tight",
      cell: ({ state }) => <Badge mood={moodOf(state)}>{devices.bulk.statuses[state] ?? state}</Badge>
    },
    {
      id: "reason",
      title: devices.bulk.reason,
      cell: ({ code, reason }) => <span class="wrap">{code !== null && code !== 200 && code} {reason}</span>
    }
  ]
}

const moods: Readonly<Record<string, Mood>> = {
  succeeded: "good",
  failed: "bad",
  gone: "bad",
  expired: "warn",
  cancelled: "plain"
}

const moodOf = (state: string): Mood => moods[state] ?? "busy"
