/**
 * The mesh networks of the project.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite, may } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Ago } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { address } from "./address.ts"
import { NewMeshNetwork } from "./NewMeshNetwork.tsx"

type Network = Item<typeof api.mesh.listMeshNetworks>

const MeshNetworks = () => {
  const { mesh, shell } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = useQuery(
    (signal) => api.mesh.listMeshNetworks({ query: { page: url.page, page_size: 50 }, signal }),
    [url.page]
  )
  const create = canWrite("mesh") && (
    <button type="button" class="button primary" onClick={() => setCreating(true)}>{mesh.create}</button>
  )
  return (
    <Page title={shell.pages.mesh} lead={mesh.lead} actions={create}>
      <Listing query={query} empty={<Empty title={mesh.none}>{mesh.noneHint}</Empty>}>
        {(rows) => (
          <Table
            caption={mesh.caption}
            columns={columnsOf()}
            rows={rows}
            keyOf={({ created_at, network_key }) => `${network_key} ${created_at}`}
          />
        )}
      </Listing>
      {isCreating && <NewMeshNetwork onClose={() => setCreating(false)} onCreated={query.reload} />}
    </Page>
  )
}

const columnsOf = (): ReadonlyArray<Column<Network>> => {
  const { common, mesh } = texts()
  return [
    {
      id: "key",
      title: mesh.networkKey,
      cell: ({ network_key }) =>
        // The key is the name of a network: who may not read it cannot open the network.
        may("operator")
          ? <a class="mono" href={`/console/mesh/${network_key}`}>{network_key}</a>
          : <span class="soft">{mesh.hidden}</span>
    },
    { id: "gateway", title: mesh.nextGateway, cell: ({ provisioner_cursor }) => <code>{address(provisioner_cursor)}</code> },
    { id: "node", title: mesh.nextSubDevice, cell: ({ unicast_cursor }) => <code>{address(unicast_cursor)}</code> },
    { id: "created", title: common.created, kind: "tight", cell: ({ created_at }) => <Ago at={created_at} /> }
  ]
}

export default MeshNetworks
