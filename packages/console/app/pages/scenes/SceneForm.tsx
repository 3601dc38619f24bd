/**
 * Writes a scene.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { canWrite } from "../../api/session.ts"
import { CheckField, Form, TextField } from "../../parts/Form.tsx"
import { Card } from "../../parts/Page.tsx"
import { Json } from "../../parts/Small.tsx"
import { useStored } from "../../parts/useStored.ts"
import { useUnsavedWarning } from "../../parts/useUnsavedWarning.ts"
import { useTexts } from "../../text/text.ts"
import { type Draft, type PartRole, roles } from "./draft.ts"
import { PartList } from "./PartList.tsx"
import "./scenes.css"

export const SceneForm = (
  { draft: first, onSave, onSaved, read, warnings }: {
    readonly draft: Draft
    readonly warnings: ReadonlyArray<string>
    /** Reads what is stored by now. */
    readonly read: () => Promise<Draft>
    /** Stores a draft, and returns what is stored then. */
    readonly onSave: (draft: Draft) => Promise<Draft>
    readonly onSaved: () => void
  }
) => {
  const { common, scenes } = useTexts()
  const [draft, setDraft] = useState(first)
  const latest = useRef(draft)
  latest.current = draft
  const [isChanged, setChanged] = useState(false)
  const change = (changes: Partial<Draft>) => {
    setDraft((draft) => ({ ...draft, ...changes }))
    setChanged(true)
  }
  // The button of the page enables and disables the scene, too.
  useEffect(() => setDraft((draft) => ({ ...draft, status: first.status })), [first.status])
  useUnsavedWarning(isChanged)
  const { newer, save: store } = useStored(first, {
    idOf: (draft) => JSON.stringify(partsOf(draft)),
    isChanged: (base) => isChanged && JSON.stringify(base) !== JSON.stringify(draft),
    take: (stored) => setDraft(stored)
  })
  const save = async () => {
    let { status } = draft
    const saved = await store(
      async () => {
        const stored = await read()
        if (status === first.status) status = stored.status
        return stored
      },
      () => onSave({ ...draft, status })
    )
    if (saved === undefined) return
    onSaved()
    // What was typed meanwhile is not saved.
    if (latest.current === draft) setChanged(false)
  }
  const fields = (
    <div class="stack">
      {warnings.length > 0 && (
        <div class="notice warn" role="status">
          <h3>{scenes.warnings}</h3>
          <ul>{warnings.map((warning) => <li key={warning} class="wrap">{warning}</li>)}</ul>
        </div>
      )}
      <Card>
        <TextField
          label={common.name}
          path="name"
          required
          value={draft.name}
          onInput={(name) => change({ name })}
        />
        <TextField label={common.description} path="desc" value={draft.desc} onInput={(desc) => change({ desc })} />
        <CheckField
          label={scenes.statuses.enable}
          checked={draft.status === "enable"}
          onChange={(isOn) => change({ status: isOn ? "enable" : "disable" })}
        />
      </Card>
      <div class="scene-parts">
        {roles.map((role: PartRole) => (
          <PartList key={role} role={role} parts={draft[role]} onChange={(parts) => change({ [role]: parts })} />
        ))}
      </div>
      {newer !== undefined && (
        <div class="notice warn" role="alert">
          <p>{common.changedMeanwhile}</p>
          <Json value={partsOf(newer.stored)} />
        </div>
      )}
    </div>
  )
  // Viewers see the same, and change nothing.
  if (!canWrite("scenes")) return <fieldset disabled>{fields}</fieldset>
  return <Form submit={common.save} onSubmit={save}>{fields}</Form>
}

/** What one writes; the status follows what is stored until one changes it here. */
const partsOf = ({ actions, conditions, desc, name, triggers }: Draft): Omit<Draft, "status"> => ({
  name,
  desc,
  triggers,
  conditions,
  actions
})
