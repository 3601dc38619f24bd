/**
 * One property, event or service of a thing model.
 */
import { useState } from "preact/hooks"
import { Form, SelectField, TextField } from "../../../parts/Form.tsx"
import { useTexts } from "../../../text/text.ts"
import { DataTypeFields } from "./DataTypeFields.tsx"
import { FieldsText } from "./FieldsText.tsx"
import type { List, ModelElement } from "./ModelElement.ts"

const firsts: Readonly<Record<List, ModelElement>> = {
  properties: { id: "", name: "", accessMode: "rw", dataType: { type: "float" } },
  events: { id: "", name: "", eventType: "info", outputData: [] },
  services: { id: "", name: "", callType: "async", inputData: [], outputData: [] }
}

export const ElementForm = (
  { element, list, onCancel, onSave }: {
    readonly list: List
    /** Undefined: a new one. */
    readonly element: ModelElement | undefined
    readonly onCancel: () => void
    readonly onSave: (element: ModelElement) => void
  }
) => {
  const { common, products: { model: words } } = useTexts()
  const [draft, setDraft] = useState(element ?? firsts[list])
  // Two fields may be half written at once: one that is right says nothing of the other.
  const [areInputsValid, setInputsValid] = useState(true)
  const [isRestValid, setRestValid] = useState(true)
  const change = (changes: Partial<ModelElement>) => setDraft({ ...draft, ...changes })
  return (
    <Form
      submit={common.save}
      disabled={!areInputsValid || !isRestValid}
      onCancel={onCancel}
      onSubmit={async () => onSave(draft)}
    >
      <TextField
        label={words.id}
        hint={words.idHint}
        issue={draft.id === "" || /^\w{1,50}$/.test(draft.id) ? undefined : words.idHint}
        required
        value={draft.id}
        onInput={(id) => change({ id })}
      />
      <TextField label={words.name} required value={draft.name} onInput={(name) => change({ name })} />
      <TextField label={common.description} value={draft.desc ?? ""} onInput={(desc) => change({ desc })} />
      {list === "properties" && (
        <>
          <SelectField
            label={words.access}
            value={draft.accessMode ?? "rw"}
            options={Object.entries(words.accesses)}
            onChange={(accessMode) => change({ accessMode })}
          />
          <DataTypeFields
            value={draft.dataType ?? { type: "float" }}
            onChange={(dataType) => change({ dataType })}
            onValid={setRestValid}
          />
        </>
      )}
      {list === "events" && (
        <SelectField
          label={words.eventType}
          value={draft.eventType ?? "info"}
          options={["info", "alert", "error"].map((type) => [type, type] as const)}
          onChange={(eventType) => change({ eventType })}
        />
      )}
      {list === "services" && (
        <>
          <SelectField
            label={words.callType}
            value={draft.callType ?? "async"}
            options={Object.entries(words.callTypes)}
            onChange={(callType) => change({ callType })}
          />
          <FieldsText
            label={words.inputs}
            value={draft.inputData ?? []}
            onChange={(inputData) => change({ inputData })}
            onValid={setInputsValid}
          />
        </>
      )}
      {list !== "properties" && (
        <FieldsText
          label={words.outputs}
          value={draft.outputData ?? []}
          onChange={(outputData) => change({ outputData })}
          onValid={setRestValid}
        />
      )}
    </Form>
  )
}
