/**
 * A gateway: its sub-devices as a picture and as a table, and how more join.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { DeviceLink, StatusBadge } from "../../parts/Devices.tsx"
import { ask } from "../../parts/Dialog.tsx"
import { Pager } from "../../parts/Listing.tsx"
import { Card, Empty, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { usePresence } from "../../parts/usePresence.ts"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { AddSession } from "./AddSession.tsx"
import { TopologyPicture } from "./TopologyPicture.tsx"

export type SubDevice = Data<typeof api.topology.listTopology>["sub_devices"][number]

/** How many sub-devices the picture has. */
const pageSize = 60

export const Gateway = ({ gatewayId }: { readonly gatewayId: string }) => {
  const { gateways, shell } = useTexts()
  const url = useUrl()
  const product = url.get("product")
  const device = useQuery(async (signal) => {
    const { device_info } = await api.devices.getDevice({ params: { device_id: gatewayId }, signal })
    return device_info
  }, [gatewayId])
  const topology = useQuery(
    (signal) => api.topology.listTopology({ params: { device_id: gatewayId }, signal }),
    [gatewayId]
  )
  useLive({ device_id: gatewayId, types: ["topology"] }, topology.reload)
  const crumb = product === "" ? "/console/gateways" : `/console/gateways?${new URLSearchParams({ product })}`
  return (
    <Page
      title={device.data?.nickname || device.data?.device_name || gatewayId}
      crumbs={[{ title: shell.pages.gateways, href: crumb }]}
      lead={topology.data && gateways.count(formatNumber(topology.data.sub_devices.length))}
    >
      <div class="stack">
        <Shown query={device}>
          {({ device_name }) => (
            <Shown query={topology}>
              {({ sub_devices }) => (
                <>
                  <AddSession gatewayId={gatewayId} topology={sub_devices} />
                  <Topology
                    gatewayId={gatewayId}
                    name={device_name}
                    subDevices={sub_devices}
                    reload={topology.reload}
                  />
                </>
              )}
            </Shown>
          )}
        </Shown>
      </div>
    </Page>
  )
}

const Topology = ({ gatewayId, name, reload, subDevices }: {
  readonly gatewayId: string
  readonly name: string
  readonly subDevices: ReadonlyArray<SubDevice>
  readonly reload: () => void
}) => {
  const { common, gateways } = useTexts()
  const url = useUrl()
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const pages = Math.max(1, Math.ceil(subDevices.length / pageSize))
  const page = Math.min(url.page, pages)
  const shown = subDevices.slice((page - 1) * pageSize, page * pageSize)
  const presence = usePresence([gatewayId, ...shown.map(({ device_id }) => device_id)])
  const statuses = presence.data ?? {}
  const chosen = subDevices.filter(({ device_id }) => selected.has(device_id))
  const askRemove = () =>
    ask({
      title: gateways.removeTitle(chosen.length, name),
      body: <p>{gateways.removeBody}</p>,
      action: gateways.remove(chosen.length),
      danger: true,
      run: async () => {
        const params = chosen.map(({ device_name, product_key }) => ({ device_name, product_key }))
        await api.topology.removeSubDevices({ params: { device_id: gatewayId }, payload: { params } })
        tell(texts().gateways.removed)
        setSelected(new Set())
        reload()
      }
    })
  return (
    <>
      <Card title={gateways.picture}>
        <TopologyPicture gateway={{ device_id: gatewayId, device_name: name }} subDevices={shown} statuses={statuses} />
      </Card>
      {subDevices.length === 0
        ? <Empty title={gateways.noSubDevices}>{gateways.noSubDevicesHint}</Empty>
        : (
          <>
            <Table
              caption={gateways.subDevicesOf(name)}
              rows={shown}
              keyOf={({ device_id }) => device_id}
              nameOf={({ device_name }) => device_name}
              selection={canWrite("topology")
                ? {
                  keys: selected,
                  onChange: setSelected,
                  actions: chosen.length > 0 && (
                    <div class="row">
                      <span>{common.selected(chosen.length)}</span>
                      <button type="button" class="button danger" onClick={askRemove}>
                        {gateways.remove(chosen.length)}
                      </button>
                    </div>
                  )
                }
                : undefined}
              columns={[
                {
                  id: "name",
                  title: common.deviceName,
                  cell: ({ device_id, device_name }) => <DeviceLink id={device_id} name={device_name} />
                },
                {
                  id: "status",
                  title: common.status,
                  cell: ({ device_id }) => statuses[device_id] && <StatusBadge status={statuses[device_id]} />
                },
                {
                  id: "product",
                  title: common.productKey,
                  cell: ({ product_key }) => <a href={`/console/products/${product_key}`}>{product_key}</a>
                },
                { id: "id", title: common.deviceId, cell: ({ device_id }) => <code>{device_id}</code> }
              ]}
            />
            <Pager {...{ page, pages, total: subDevices.length }} />
          </>
        )}
    </>
  )
}
