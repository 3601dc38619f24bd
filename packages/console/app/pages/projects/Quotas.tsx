/**
 * How much a project may have, and has. Owners change it.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Bar } from "../../parts/Small.tsx"
import { Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { formatBytes, formatNumber, useTexts } from "../../text/text.ts"

type Quotas = Data<typeof api.quotas.getQuotas>
type Name = keyof Quotas["limits"]

export const Quotas = ({ projectId }: { readonly projectId: string }) => {
  const { projects } = useTexts()
  const [isChanging, setChanging] = useState(false)
  const query = useQuery(
    (signal) => api.quotas.getQuotas({ params: { project_id: projectId }, signal }),
    [projectId]
  )
  return (
    <Shown query={query}>
      {(quotas) => (
        <div class="stack">
          <Table
            caption={projects.quotas}
            rows={namesOf(quotas)}
            keyOf={(name) => name}
            columns={[
              { id: "quota", title: projects.quota, cell: (name) => projects.quotaNames[name] ?? name },
              {
                id: "used",
                title: projects.used,
                kind: "number",
                cell: (name) => amountOf(name, usedOf(quotas, name))
              },
              {
                id: "limit",
                title: projects.limit,
                kind: "number",
                cell: (name) => amountOf(name, quotas.limits[name])
              },
              {
                id: "share",
                title: projects.share,
                cell: (name) => <Share limit={quotas.limits[name]} used={usedOf(quotas, name)} />
              }
            ]}
          />
          {canWrite("quotas", "owner") && (
            <div class="row end">
              <button type="button" class="button" onClick={() => setChanging(true)}>{projects.change}</button>
            </div>
          )}
          {isChanging && (
            <ChangeQuotas
              projectId={projectId}
              quotas={quotas}
              onClose={() => setChanging(false)}
              onChanged={query.reload}
            />
          )}
        </div>
      )}
    </Shown>
  )
}

const namesOf = ({ limits }: Quotas) => Object.keys(limits) as ReadonlyArray<Name>

const usedOf = ({ used }: Quotas, name: Name): number | undefined =>
  (used as Readonly<Partial<Record<Name, number>>>)[name]

const amountOf = (name: Name, amount: number | undefined): string => {
  if (amount === undefined) return ""
  return name === "object_bytes" ? formatBytes(amount) : formatNumber(amount)
}

const Share = ({ limit, used }: { readonly limit: number; readonly used: number | undefined }) => {
  const { projects } = useTexts()
  if (used === undefined) return null
  const mood = used >= limit ? "bad" : used > limit * 0.8 ? "warn" : "busy"
  return (
    <Bar
      label={projects.used}
      parts={[
        { title: projects.used, count: Math.min(used, limit), mood },
        { title: projects.limit, count: Math.max(0, limit - used), mood: "free" }
      ]}
    />
  )
}

const ChangeQuotas = (
  { onChanged, onClose, projectId, quotas }: {
    readonly projectId: string
    readonly quotas: Quotas
    readonly onClose: () => void
    readonly onChanged: () => void
  }
) => {
  const { common, projects } = useTexts()
  const close = useClose(onClose)
  // Somebody else may change quotas meanwhile: what one has not touched is theirs.
  const [changed, setChanged] = useState<Readonly<Partial<Record<Name, string>>>>({})
  const changes = () =>
    Object.fromEntries(Object.entries(changed).map(([name, value]) => [name, value === "" ? null : Number(value)]))
  return (
    <Dialog title={projects.change} onClose={onClose}>
      <Form
        submit={common.save}
        onCancel={onClose}
        onSubmit={async () => {
          await api.quotas.setQuotas({ params: { project_id: projectId }, payload: changes() })
          tell(common.saved)
          close()
          onChanged()
        }}
      >
        {namesOf(quotas).map((name) => (
          <TextField
            key={name}
            label={projects.quotaNames[name] ?? name}
            path={name}
            hint={projects.limitHint}
            type="number"
            min={0}
            value={changed[name] ?? String(quotas.limits[name])}
            onInput={(value) => setChanged({ ...changed, [name]: value })}
          />
        ))}
      </Form>
    </Dialog>
  )
}
