/**
 * One scene: writing it, trying it, and what it has done.
 */
import { useRoute } from "preact-iso"
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ask, Counted } from "../../parts/Dialog.tsx"
import { DeleteButton } from "../../parts/Listing.tsx"
import { Page, Tabs } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, useTexts } from "../../text/text.ts"
import { bodyOf, draftOf, emptyDraft, type StoredScene } from "./draft.ts"
import { DryRun } from "./DryRun.tsx"
import { Executions } from "./Executions.tsx"
import { SceneForm } from "./SceneForm.tsx"
import { ScenePicture } from "./ScenePicture.tsx"
import { SceneStatus } from "./Scenes.tsx"

const tabs = ["edit", "dry", "executions", "picture"] as const

const Scene = () => {
  const { params } = useRoute()
  const id = params["sceneId"]!
  return id === "new" ? <NewScene /> : <StoredScenePage id={id} tab={params["tab"]} />
}

const NewScene = () => {
  const { scenes, shell } = useTexts()
  const goTo = useGoTo()
  return (
    <Page title={scenes.create} crumbs={[{ title: shell.pages.scenes, href: "/console/scenes" }]}>
      <SceneForm
        draft={emptyDraft}
        warnings={[]}
        read={async () => emptyDraft}
        onSave={async (draft) => {
          const { id } = await api.scenes.createScene({ payload: bodyOf(draft) })
          goTo(`/console/scenes/${id}`)
          return draft
        }}
        onSaved={() => tell(scenes.saved)}
      />
    </Page>
  )
}

const StoredScenePage = ({ id, tab: given }: { readonly id: string; readonly tab: string | undefined }) => {
  const { scenes, shell } = useTexts()
  const tab = tabs.find((tab) => tab === given) ?? "edit"
  const [warnings, setWarnings] = useState<ReadonlyArray<string>>([])
  const query = useQuery((signal) => api.scenes.getScene({ params: { id }, signal }), [id])
  return (
    <Page
      title={query.data?.name ?? id}
      tab={tab === "edit" ? undefined : scenes.tabs[tab]}
      lead={query.data === undefined ? undefined : <SceneStatus {...query.data} />}
      crumbs={[{ title: shell.pages.scenes, href: "/console/scenes" }]}
      actions={query.data !== undefined && canWrite("scenes") && <Actions scene={query.data} reload={query.reload} />}
    >
      {query.error?.isMissing !== true && <Tabs
        label={shell.pages.scenes}
        current={tab}
        tabs={tabs.map((id) => ({ id, title: scenes.tabs[id] })).map(({ id: tab, title }) => ({
          id: tab,
          title,
          href: tab === "edit" ? `/console/scenes/${id}` : `/console/scenes/${id}/${tab}`
        }))}
      />}
      <Shown query={query}>
        {(scene) => (
          <>
            {tab === "edit" && (
              <SceneForm
                draft={draftOf(scene)}
                warnings={warnings}
                read={async () => draftOf(await api.scenes.getScene({ params: { id } }))}
                onSave={async (draft) => {
                  const changed = await api.scenes.updateScene({ params: { id }, payload: bodyOf(draft) })
                  setWarnings(changed.warnings)
                  return draftOf(changed)
                }}
                onSaved={() => {
                  tell(scenes.saved)
                  query.reload()
                }}
              />
            )}
            {tab === "dry" && <DryRun scene={scene} />}
            {tab === "executions" && <Executions id={id} />}
            {tab === "picture" && <ScenePicture scene={scene} />}
          </>
        )}
      </Shown>
    </Page>
  )
}

const Actions = (
  { reload, scene: { actions, id, name, status } }: { readonly scene: StoredScene; readonly reload: () => void }
) => {
  const { scenes } = useTexts()
  const goTo = useGoTo()
  const params = { id }
  return (
    <>
      <button
        type="button"
        class="button"
        onClick={() =>
          ask({
            title: scenes.runTitle(name),
            body: scenes.runBody(formatNumber(actions.length)),
            action: scenes.run,
            run: () => api.scenes.runScene({ params }).then(() => tell(scenes.ran))
          })}
      >
        {scenes.run}
      </button>
      <button
        type="button"
        class="button"
        onClick={() =>
          void api.scenes.setSceneStatus({ params, payload: { status: status === "enable" ? "disable" : "enable" } })
            .then(reload, tellFailure)}
      >
        {status === "enable" ? scenes.disable : scenes.enable}
      </button>
      <DeleteButton
        title={scenes.removeTitle(name)}
        body={
          <Counted read={(signal) => api.scenes.listExecutions({ params, query: { page_size: 1 }, signal })}>
            {({ total }) => scenes.removeBody(formatNumber(total))}
          </Counted>
        }
        remove={() => api.scenes.deleteScene({ params })}
        onDeleted={() => goTo("/console/scenes")}
      />
    </>
  )
}

export default Scene
