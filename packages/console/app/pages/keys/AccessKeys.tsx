/**
 * The access keys of the project.
 */
import { type Signal, useSignal } from "@preact/signals"
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite, may, session } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Counted } from "../../parts/Dialog.tsx"
import { CheckField } from "../../parts/Form.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Ago, Badge } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { NewAccessKey } from "./NewAccessKey.tsx"

type AccessKey = Item<typeof api.projects.listAccessKeys>

const AccessKeys = () => {
  const { keys, shell } = useTexts()
  return may("admin")
    ? <AccessKeyList />
    : <Page title={shell.pages.keys} lead={keys.lead}><Empty title={keys.adminsOnly} /></Page>
}

const AccessKeyList = () => {
  const { keys, shell } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = useQuery(
    (signal) => api.projects.listAccessKeys({ query: { page: url.page, page_size: 50 }, signal }),
    [url.page]
  )
  return (
    <Page
      title={shell.pages.keys}
      lead={keys.lead}
      actions={canWrite("projects", "admin") &&
        <button type="button" class="button primary" onClick={() => setCreating(true)}>{keys.create}</button>}
    >
      <Listing query={query} empty={<Empty title={keys.empty} />}>
        {(rows) => (
          <Table caption={keys.caption} columns={columnsOf(query.reload)} rows={rows} keyOf={({ id }) => id} />
        )}
      </Listing>
      {isCreating && <NewAccessKey onClose={() => setCreating(false)} onCreated={query.reload} />}
    </Page>
  )
}

const columnsOf = (reload: () => void): ReadonlyArray<Column<AccessKey>> => {
  const { common, keys } = texts()
  return [
    {
      id: "name",
      title: common.name,
      cell: ({ addresses, id, name, scopes: { actions = [], products = [] } }) => (
        <span class="wrap">
          {name} {id === session.value?.key_id && <Badge mood="busy">{keys.yours}</Badge>}
          {products.length + actions.length + addresses.length > 0 && (
            <span class="small soft">{keys.only(products.length, actions.length, addresses.length)}</span>
          )}
        </span>
      )
    },
    { id: "role", title: keys.role, cell: ({ role }) => common.roles[role] },
    { id: "used", title: keys.lastUsed, cell: ({ last_used_at }) => <Ago at={last_used_at} /> },
    { id: "created", title: common.created, cell: ({ created_at }) => <Ago at={created_at} /> },
    { id: "expires", title: keys.expires, cell: ({ expires_at }) => <Ago at={expires_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      // The key of the cloud's owner comes from the configuration of the server.
      cell: (key) => key.role !== "owner" && canWrite("projects", "admin") && <Remove accessKey={key} reload={reload} />
    }
  ]
}

const Remove = (
  { accessKey: { id, name }, reload }: { readonly accessKey: AccessKey; readonly reload: () => void }
) => {
  const { keys } = useTexts()
  const cascade = useSignal(false)
  return (
    <DeleteButton
      title={keys.removeTitle(name)}
      body={
        <div class="stack">
          <p>{keys.removeBody}</p>
          <Cascade id={id} chosen={cascade} />
        </div>
      }
      remove={() => api.projects.deleteAccessKey({ params: { id }, query: cascade.value ? { cascade: "true" } : {} })}
      onDeleted={reload}
    />
  )
}

/** As many keys are looked at for those that come from one. */
const counted = 100

const Cascade = ({ chosen, id }: { readonly id: string; readonly chosen: Signal<boolean> }) => {
  const { keys } = useTexts()
  return (
    <Counted read={(signal) => api.projects.listAccessKeys({ query: { page_size: counted }, signal })}>
      {({ results, total }) => (
        <CheckField
          label={keys.cascade(formatNumber(descendantsOf(id, results)), total > counted)}
          checked={chosen.value}
          onChange={(isChosen) => chosen.value = isChosen}
        />
      )}
    </Counted>
  )
}

/** How many keys come from one, directly or through others. */
const descendantsOf = (id: string, keys: ReadonlyArray<AccessKey>): number =>
  keys.filter(({ created_by }) => created_by === id)
    .reduce((sum, child) => sum + 1 + descendantsOf(child.id, keys), 0)

export default AccessKeys
