/**
 * The access keys of the project.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { may, session } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ask } from "../../parts/Dialog.tsx"
import { CheckField } from "../../parts/Form.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Ago, Badge, Time } from "../../parts/Small.tsx"
import { type Column, Pager, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"
import { NewAccessKey } from "./NewAccessKey.tsx"

type AccessKey = Item<typeof api.projects.listAccessKeys>

const AccessKeys = () => {
  const { keys, shell } = useTexts()
  return (
    <Page title={shell.pages.keys} lead={keys.lead}>
      {may("admin") ? <AccessKeyList /> : <Empty title={keys.adminsOnly} />}
    </Page>
  )
}

const AccessKeyList = () => {
  const { keys } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = useQuery(
    (signal) => api.projects.listAccessKeys({ query: { page: url.page, page_size: 50 }, signal }),
    [url.page]
  )
  return (
    <div class="stack">
      <div class="row end">
        <button type="button" class="button primary" onClick={() => setCreating(true)}>{keys.create}</button>
      </div>
      <Shown query={query}>
        {({ page, pages, results, total }) => (
          <>
            <Table
              caption={keys.caption}
              columns={columnsOf(query.reload)}
              rows={results}
              keyOf={({ id }) => id}
              isStale={query.isLoading}
            />
            <Pager {...{ page, pages, total }} onPage={(page) => url.set({ page })} />
          </>
        )}
      </Shown>
      {isCreating && <NewAccessKey onClose={() => setCreating(false)} onCreated={query.reload} />}
    </div>
  )
}

const columnsOf = (reload: () => void): ReadonlyArray<Column<AccessKey>> => {
  const { common, keys } = texts()
  return [
    {
      id: "name",
      title: common.name,
      cell: ({ id, name }) => (
        <span class="wrap">
          {name} {id === session.value?.key_id && <Badge mood="busy">{keys.yours}</Badge>}
        </span>
      )
    },
    { id: "role", title: keys.role, cell: ({ role }) => common.roles[role] },
    { id: "used", title: keys.lastUsed, cell: ({ last_used_at }) => <Ago at={last_used_at} /> },
    { id: "created", title: common.created, cell: ({ created_at }) => <Time at={created_at} /> },
    { id: "expires", title: keys.expires, cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: (key) => (
        <button type="button" class="button small danger" onClick={() => askRemove(key, reload)}>
          {common.remove}
        </button>
      )
    }
  ]
}

const askRemove = ({ id, name }: AccessKey, reload: () => void) => {
  const { common, keys } = texts()
  let cascade = false
  ask({
    title: keys.removeTitle(name),
    body: (
      <div class="stack">
        <p>{keys.removeBody}</p>
        <Cascade onChange={(chosen) => cascade = chosen} />
      </div>
    ),
    action: common.remove,
    danger: true,
    run: async () => {
      await api.projects.deleteAccessKey({ params: { id }, query: cascade ? { cascade: "true" } : {} })
      tell(common.removed)
      reload()
    }
  })
}

const Cascade = ({ onChange }: { readonly onChange: (chosen: boolean) => void }) => {
  const { keys } = useTexts()
  const [isChosen, setChosen] = useState(false)
  return (
    <CheckField
      label={keys.cascade}
      checked={isChosen}
      onChange={(chosen) => {
        setChosen(chosen)
        onChange(chosen)
      }}
    />
  )
}

export default AccessKeys
