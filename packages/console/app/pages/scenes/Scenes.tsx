/**
 * The scenes of the project.
 */
import { api } from "../../api/client.ts"
import { isToCome } from "../../api/clock.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { SelectField, TextField } from "../../parts/Form.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Ago, Badge } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tellFailure } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"

type Scene = Item<typeof api.scenes.listScenes>

const Scenes = () => {
  const { common, scenes, shell } = useTexts()
  const url = useUrl()
  const name = url.get("name")
  const status = url.get("status") as "" | "enable" | "disable"
  const query = useQuery(
    (signal) =>
      api.scenes.listScenes({
        query: {
          page: url.page,
          page_size: 25,
          ...name === "" ? {} : { name },
          ...status === "" ? {} : { status }
        },
        signal
      }),
    [url.page, name, status]
  )
  return (
    <Page
      title={shell.pages.scenes}
      lead={scenes.lead}
      actions={canWrite("scenes") && <a class="button primary" href="/console/scenes/new">{scenes.create}</a>}
    >
      <div class="stack">
        <div class="filters">
          <TextField label={scenes.search} type="search" value={name} onInput={(name) => url.set({ name }, true)} />
          <SelectField
            label={common.status}
            value={status}
            options={[["", common.all], ...Object.entries(scenes.statuses) as ReadonlyArray<["enable", string]>]}
            onChange={(status) => url.set({ status })}
          />
        </div>
        <Listing query={query} empty={<Empty title={scenes.emptyTitle}>{scenes.emptyBody}</Empty>}>
          {(rows) => (
            <Table caption={scenes.caption} columns={columnsOf(query.reload)} rows={rows} keyOf={({ id }) => id} />
          )}
        </Listing>
      </div>
    </Page>
  )
}

/** Enabled or not, and whether it has run too often. */
export const SceneStatus = (
  { paused_until, status }: { readonly status: string; readonly paused_until: string }
) => {
  const { scenes } = useTexts()
  if (isToCome(paused_until)) return <Badge mood="warn">{scenes.paused}</Badge>
  return status === "enable"
    ? <Badge mood="good">{scenes.statuses.enable}</Badge>
    : <Badge>{scenes.statuses.disable}</Badge>
}

const columnsOf = (reload: () => void): ReadonlyArray<Column<Scene>> => {
  const { common, scenes } = texts()
  return [
    { id: "name", title: common.name, cell: ({ id, name }) => <a class="wrap" href={`/console/scenes/${id}`}>{name}</a> },
    { id: "status", title: common.status, kind: "tight", cell: (scene) => <SceneStatus {...scene} /> },
    {
      id: "parts",
      title: scenes.parts,
      cell: ({ actions, conditions, triggers }) => scenes.partsOf(triggers.length, conditions.length, actions.length)
    },
    { id: "changed", title: common.changed, kind: "tight", cell: ({ updated_at }) => <Ago at={updated_at * 1000} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: ({ id, status }) =>
        canWrite("scenes") && (
          <button
            type="button"
            class="button small"
            onClick={() =>
              void api.scenes.setSceneStatus({
                params: { id },
                payload: { status: status === "enable" ? "disable" : "enable" }
              }).then(reload, tellFailure)}
          >
            {status === "enable" ? scenes.disable : scenes.enable}
          </button>
        )
    }
  ]
}

export default Scenes
