/**
 * One group, and the devices that are in it now.
 */
import { useEffect, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery, useQuery } from "../../api/useQuery.ts"
import { DeviceLink, StatusBadge } from "../../parts/Devices.tsx"
import { ask, Dialog } from "../../parts/Dialog.tsx"
import { ListField, listOf } from "../../parts/Fields.tsx"
import { Form } from "../../parts/Form.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Json } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { GroupForm } from "./GroupForm.tsx"
import type { GroupData } from "./Groups.tsx"
import { SetProperties } from "./SetProperties.tsx"

type Member = Item<typeof api.deviceGroups.listDevicesOfGroup>

export const Group = ({ id }: { readonly id: string }) => {
  const { groups } = useTexts()
  const url = useUrl()
  const params = { group_id: id }
  const query = useQuery((signal) => api.deviceGroups.getDeviceGroup({ params, signal }), [id])
  const members = usePolledQuery(
    (signal) => api.deviceGroups.listDevicesOfGroup({ params, query: { page: url.page, page_size: 25 }, signal }),
    [id, url.page],
    10
  )
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => setSelected(new Set()), [id, url.page])
  const reload = () => {
    setSelected(new Set())
    query.reload()
    members.reload()
  }
  return (
    <Shown query={query}>
      {(group) => (
        <Card
          title={group.name}
          actions={
            <>
              <a class="button" href="/console/devices?view=groups">{groups.toAll}</a>
              <Actions group={group} count={members.data?.total ?? 0} reload={reload} />
            </>
          }
        >
          {group.desc !== "" && <p>{group.desc}</p>}
          <p class="soft">{groups.kindHints[group.type]}</p>
          {group.query !== null && <Json value={group.query} />}
          <Listing query={members} empty={<p class="soft">{groups.noDevices}</p>}>
            {(rows) => (
              <Table
                caption={groups.members}
                columns={columnsOf()}
                rows={rows}
                keyOf={({ device_id }) => device_id}
                nameOf={({ device_name }) => device_name}
                selection={canWrite("deviceGroups") && group.type === "static"
                  ? {
                    keys: selected,
                    onChange: setSelected,
                    actions: selected.size > 0 && (
                      <TakeOut id={id} name={group.name} ids={[...selected]} onDone={reload} />
                    )
                  }
                  : undefined}
              />
            )}
          </Listing>
        </Card>
      )}
    </Shown>
  )
}

const columnsOf = (): ReadonlyArray<Column<Member>> => {
  const { common, devices } = texts()
  return [
    {
      id: "name",
      title: common.deviceName,
      cell: ({ device_id, device_name }) => <DeviceLink id={device_id} name={device_name} />
    },
    { id: "nickname", title: devices.nickname, cell: ({ nickname }) => <span class="wrap">{nickname}</span> },
    { id: "status", title: common.status, kind: "tight", cell: ({ status }) => <StatusBadge status={status} /> },
    {
      id: "product",
      title: common.productKey,
      cell: ({ product_key }) => <a href={`/console/products/${product_key}`}>{product_key}</a>
    }
  ]
}

const Actions = (
  { count, group, reload }: { readonly group: GroupData; readonly count: number; readonly reload: () => void }
) => {
  const { common, devices, groups } = useTexts()
  const goTo = useGoTo()
  const [open, setOpen] = useState<"edit" | "add" | "properties">()
  const close = () => setOpen(undefined)
  return (
    <>
      {canWrite("deviceGroups") && group.type === "static" && (
        <button type="button" class="button" onClick={() => setOpen("add")}>{groups.add}</button>
      )}
      {canWrite("bulkCommands") && (
        <button type="button" class="button" disabled={count === 0} onClick={() => setOpen("properties")}>
          {devices.setProperties}
        </button>
      )}
      {canWrite("deviceGroups") && (
        <>
          <button type="button" class="button" onClick={() => setOpen("edit")}>{common.edit}</button>
          <DeleteButton
            title={groups.removeTitle(group.name)}
            body={groups.removeBody(formatNumber(count))}
            remove={() => api.deviceGroups.deleteDeviceGroup({ params: { group_id: String(group.group_id) } })}
            onDeleted={() => goTo("/console/devices?view=groups")}
          />
        </>
      )}
      {open === "edit" && <GroupForm group={group} onClose={close} onSaved={reload} />}
      {open === "add" && <AddDevices id={String(group.group_id)} onClose={close} onAdded={reload} />}
      {open === "properties" && <SetProperties scope={{ group_id: group.group_id }} count={count} onClose={close} />}
    </>
  )
}

const TakeOut = (
  { id, ids, name, onDone }: {
    readonly id: string
    readonly name: string
    readonly ids: ReadonlyArray<string>
    readonly onDone: () => void
  }
) => {
  const { common, groups } = useTexts()
  return (
    <div class="row" role="toolbar" aria-label={common.selected(ids.length)}>
      <strong>{common.selected(ids.length)}</strong>
      <button
        type="button"
        class="button small danger"
        onClick={() =>
          ask({
            title: groups.takeOutTitle(ids.length, name),
            body: groups.takeOutBody,
            action: groups.takeOut,
            danger: true,
            run: async () => {
              await api.deviceGroups.removeDevicesFromGroup({
                params: { group_id: id },
                payload: { device_ids: [...ids] }
              })
              onDone()
            }
          })}
      >
        {groups.takeOut}
      </button>
    </div>
  )
}

const AddDevices = (
  { id, onAdded, onClose }: { readonly id: string; readonly onClose: () => void; readonly onAdded: () => void }
) => {
  const { groups, jobs } = useTexts()
  const close = useClose(onClose)
  const [text, setText] = useState("")
  const ids = listOf(text)
  return (
    <Dialog title={groups.add} onClose={onClose}>
      <Form
        submit={groups.add}
        disabled={ids.length === 0}
        onCancel={onClose}
        onSubmit={async () => {
          const { added } = await api.deviceGroups.addDevicesToGroup({
            params: { group_id: id },
            payload: { device_ids: [...ids] }
          })
          tell(groups.added(added))
          onAdded()
          close()
        }}
      >
        <ListField label={jobs.deviceIds} hint={jobs.deviceIdsHint} path="device_ids" value={text} onInput={setText} />
      </Form>
    </Dialog>
  )
}
