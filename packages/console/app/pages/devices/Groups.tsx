/**
 * Groups of devices: those that were put together, and those for which a query holds.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Listing } from "../../parts/Listing.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Badge, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { Group } from "./Group.tsx"
import { GroupForm } from "./GroupForm.tsx"

export type GroupData = Item<typeof api.deviceGroups.listDeviceGroups>

export const Groups = () => {
  const chosen = useUrl().get("group")
  return chosen === "" ? <GroupList /> : <Group key={chosen} id={chosen} />
}

const GroupList = () => {
  const { groups } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = useQuery(
    (signal) => api.deviceGroups.listDeviceGroups({ query: { page: url.page, page_size: 25 }, signal }),
    [url.page]
  )
  return (
    <div class="stack">
      {canWrite("deviceGroups") && (
        <div class="row end">
          <button type="button" class="button primary" onClick={() => setCreating(true)}>{groups.create}</button>
        </div>
      )}
      <Listing query={query} empty={<Empty title={groups.empty}>{groups.emptyBody}</Empty>}>
        {(rows) => (
          <Table
            caption={groups.caption}
            columns={columnsOf()}
            rows={rows}
            keyOf={({ group_id }) => String(group_id)}
          />
        )}
      </Listing>
      {isCreating && <GroupForm onClose={() => setCreating(false)} onSaved={query.reload} />}
    </div>
  )
}

const columnsOf = (): ReadonlyArray<Column<GroupData>> => {
  const { common, groups } = texts()
  return [
    {
      id: "name",
      title: common.name,
      cell: ({ group_id, name }) => <a class="wrap" href={`/console/devices?view=groups&group=${group_id}`}>{name}</a>
    },
    { id: "type", title: groups.kind, kind: "tight", cell: ({ type }) => <Badge>{groups.kinds[type] ?? type}</Badge> },
    { id: "desc", title: common.description, cell: ({ desc }) => <span class="wrap">{desc}</span> },
    { id: "created", title: common.created, kind: "tight", cell: ({ created_at }) => <Time at={created_at} /> }
  ]
}
