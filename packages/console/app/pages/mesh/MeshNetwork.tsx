/**
 * A mesh network: its gateways and nodes as a picture and as a table.
 */
import { useRoute } from "preact-iso"
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite, may } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { DeviceLink, StatusBadge } from "../../parts/Devices.tsx"
import { Counted } from "../../parts/Dialog.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Card, Empty, Facts, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { CopyButton, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { usePresence } from "../../parts/usePresence.ts"
import { useUrl } from "../../parts/useUrl.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { address } from "./address.ts"
import { MeshPicture } from "./MeshPicture.tsx"
import { RawData } from "./RawData.tsx"

export type MeshNode = Item<typeof api.mesh.listMeshNodes>

const MeshNetwork = () => {
  const { common, mesh, shell } = useTexts()
  const { params } = useRoute()
  const goTo = useGoTo()
  const networkKey = params["networkKey"] ?? ""
  const [isSending, setSending] = useState(false)
  const query = useQuery(
    (signal) => api.mesh.getMeshNetwork({ params: { network_key: networkKey }, signal }),
    [networkKey]
  )
  const actions = canWrite("mesh") && query.data !== undefined && (
    <>
      <button type="button" class="button" onClick={() => setSending(true)}>{mesh.send}</button>
      <DeleteButton
        title={mesh.removeTitle}
        body={
          <Counted
            read={(signal) =>
              api.mesh.listMeshNodes({ params: { network_key: networkKey }, query: { page_size: 1 }, signal })}
          >
            {({ total }) => mesh.removeBody(formatNumber(total))}
          </Counted>
        }
        typed={networkKey.slice(0, 8)}
        remove={() => api.mesh.deleteMeshNetwork({ params: { network_key: networkKey } })}
        onDeleted={() => goTo("/console/mesh")}
      />
    </>
  )
  return (
    <Page
      title={mesh.title(networkKey.slice(0, 8))}
      crumbs={[{ title: shell.pages.mesh, href: "/console/mesh" }]}
      actions={actions}
    >
      <Shown query={query}>
        {({ app_key, created_at, network_key, provisioner_cursor, unicast_cursor }) => (
          <div class="stack">
            <Card>
              <Facts
                facts={[
                  [mesh.networkKey, <Key of={mesh.networkKey} value={network_key} />],
                  [mesh.appKey, <Key of={mesh.appKey} value={app_key} />],
                  [mesh.nextGateway, <code>{address(provisioner_cursor)}</code>],
                  [mesh.nextSubDevice, <code>{address(unicast_cursor)}</code>],
                  [common.created, <Time at={created_at} />]
                ]}
              />
            </Card>
            <Nodes networkKey={networkKey} />
          </div>
        )}
      </Shown>
      {isSending && <RawData networkKey={networkKey} onClose={() => setSending(false)} />}
    </Page>
  )
}

/** A viewer reads stars in place of keys. */
const Key = ({ of, value }: { readonly of: string; readonly value: string }) => {
  const { mesh } = useTexts()
  return may("operator")
    ? <span class="row"><code class="wrap">{value}</code><CopyButton text={value} of={of} /></span>
    : <span class="soft">{mesh.hidden}</span>
}

/** How many nodes the picture has. Nothing tells when nodes join, so that they are read again. */
const pageSize = 60

const Nodes = ({ networkKey }: { readonly networkKey: string }) => {
  const { mesh } = useTexts()
  const url = useUrl()
  const query = useQuery(
    (signal) =>
      api.mesh.listMeshNodes({
        params: { network_key: networkKey },
        query: { page: url.page, page_size: pageSize },
        signal
      }),
    [networkKey, url.page]
  )
  const presence = usePresence((query.data?.results ?? []).map(({ device_id }) => device_id))
  const statuses = presence.data ?? {}
  return (
    <Listing query={query} empty={<Empty title={mesh.noNodes}>{mesh.noNodesHint}</Empty>}>
      {(rows) => (
        <>
          <Card
            title={mesh.picture}
            actions={<button type="button" class="button small" onClick={query.reload}>{mesh.reload}</button>}
          >
            <MeshPicture nodes={rows} statuses={statuses} />
          </Card>
          <Table
            caption={mesh.nodes}
            columns={columnsOf(networkKey, statuses, query.reload)}
            rows={rows}
            keyOf={({ device_id }) => device_id}
          />
        </>
      )}
    </Listing>
  )
}

const columnsOf = (
  networkKey: string,
  statuses: Readonly<Record<string, string>>,
  reload: () => void
): ReadonlyArray<Column<MeshNode>> => {
  const { common, mesh } = texts()
  const columns: ReadonlyArray<Column<MeshNode>> = [
    { id: "address", title: mesh.address, kind: "tight", cell: ({ mesh_addr }) => <code>{address(mesh_addr)}</code> },
    {
      id: "name",
      title: common.deviceName,
      cell: ({ device_id, device_name }) => <DeviceLink id={device_id} name={device_name} />
    },
    { id: "kind", title: mesh.kind, cell: ({ node_type }) => mesh.kinds[node_type] ?? node_type },
    {
      id: "status",
      title: common.status,
      cell: ({ device_id }) => statuses[device_id] && <StatusBadge status={statuses[device_id]} />
    },
    { id: "created", title: mesh.joined, kind: "tight", cell: ({ created_at }) => <Time at={created_at} /> }
  ]
  if (!canWrite("mesh")) return columns
  return [...columns, {
    id: "actions",
    title: common.actions,
    kind: "tight",
    cell: ({ device_id, device_name }) => (
      <DeleteButton
        title={mesh.removeNodeTitle(device_name)}
        body={mesh.removeNodeBody}
        remove={() => api.mesh.removeMeshNode({ params: { network_key: networkKey, device_id } })}
        onDeleted={reload}
      />
    )
  }]
}

export default MeshNetwork
