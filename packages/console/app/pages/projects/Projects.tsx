/**
 * The project one works in with its quotas; for owners, all projects.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { canWrite, may, session } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Counted, Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Card, Page } from "../../parts/Page.tsx"
import { Badge, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { Quotas } from "./Quotas.tsx"

type Project = Item<typeof api.projects.listProjects>

const Projects = () => {
  const { projects, shell } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const current = session.value!
  const chosen = url.get("project") || current.project_id
  const name = useQuery(async (signal) => {
    if (chosen === current.project_id) return current.project_name ?? chosen
    return (await api.projects.getProject({ params: { project_id: chosen }, signal })).name
  }, [chosen])
  const create = canWrite("projects", "owner") && (
    <button type="button" class="button primary" onClick={() => setCreating(true)}>{projects.create}</button>
  )
  return (
    <Page title={shell.pages.projects} lead={projects.lead} actions={create}>
      <div class="stack">
        {may("owner") && <ProjectList isCreating={isCreating} onClose={() => setCreating(false)} />}
        <Card title={projects.quotasOf(name.data ?? chosen)}>
          <Quotas key={chosen} projectId={chosen} />
        </Card>
      </div>
    </Page>
  )
}

const ProjectList = ({ isCreating, onClose }: { readonly isCreating: boolean; readonly onClose: () => void }) => {
  const { projects } = useTexts()
  const url = useUrl()
  const query = useQuery(
    (signal) => api.projects.listProjects({ query: { page: url.page, page_size: 20 }, signal }),
    [url.page]
  )
  return (
    <>
      <Listing query={query} empty={null}>
        {(rows) => (
          <Table caption={projects.caption} columns={columnsOf(query.reload)} rows={rows} keyOf={({ id }) => id} />
        )}
      </Listing>
      {isCreating && <NewProject onClose={onClose} onCreated={query.reload} />}
    </>
  )
}

const columnsOf = (reload: () => void): ReadonlyArray<Column<Project>> => {
  const { common, projects } = texts()
  return [
    {
      id: "name",
      title: common.name,
      cell: ({ id, name }) => (
        <span class="wrap">
          {name} {id === session.value?.project_id && <Badge mood="busy">{projects.current}</Badge>}
        </span>
      )
    },
    { id: "id", title: projects.id, cell: ({ id }) => <code>{id}</code> },
    { id: "created", title: common.created, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: (project) => (
        <div class="row">
          <a class="button small" href={`/console/projects?project=${encodeURIComponent(project.id)}`}>
            {projects.quotas}
          </a>
          {project.id !== session.value?.project_id && project.id !== "default" && (
            <DeleteButton
              title={projects.removeTitle(project.name)}
              body={
                <Counted read={(signal) => api.quotas.getQuotas({ params: { project_id: project.id }, signal })}>
                  {({ used }) => projects.removeBody(formatNumber(used.products), formatNumber(used.access_keys))}
                </Counted>
              }
              typed={project.name}
              remove={() => api.projects.deleteProject({ params: { project_id: project.id } })}
              onDeleted={reload}
            />
          )}
        </div>
      )
    }
  ]
}

const NewProject = ({ onClose, onCreated }: { readonly onClose: () => void; readonly onCreated: () => void }) => {
  const { common, projects } = useTexts()
  const close = useClose(onClose)
  const [name, setName] = useState("")
  return (
    <Dialog title={projects.create} onClose={onClose}>
      <Form
        submit={common.create}
        onCancel={onClose}
        onSubmit={async () => {
          await api.projects.createProject({ payload: { name } })
          close()
          onCreated()
        }}
      >
        <TextField label={common.name} path="name" required value={name} onInput={setName} />
      </Form>
    </Dialog>
  )
}

export default Projects
