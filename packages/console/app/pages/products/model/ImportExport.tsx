/**
 * Thing models as files, in the three forms.
 */
import { useState } from "preact/hooks"
import { canWrite } from "../../../api/session.ts"
import { SelectField } from "../../../parts/Form.tsx"
import { download } from "../../../parts/Small.tsx"
import { tellFailure } from "../../../parts/toasts.tsx"
import { useTexts } from "../../../text/text.ts"
import type * as Check from "./check.ts"

export const ImportExport = (
  { check: { check, convert }, metadata, onImport, productKey, version }: {
    readonly check: typeof Check
    readonly productKey: string
    /** The model as it is now, if it is valid. */
    readonly metadata: string | undefined
    readonly version: number
    readonly onImport: (metadata: string, warnings: ReadonlyArray<string>) => void
  }
) => {
  const { common, products: { model: words } } = useTexts()
  const [form, setForm] = useState<Check.ModelForm>("metadata")
  const [issues, setIssues] = useState<ReadonlyArray<string>>([])
  const read = async (file: File | undefined) => {
    if (file === undefined) return
    const text = await file.text().catch(() => {
      throw new Error(common.fileUnreadable)
    })
    const checked = check(form, text)
    if (checked.isValid) onImport(checked.metadata, checked.warnings)
    setIssues(checked.isValid ? [] : checked.issues.map(({ message, path }) => `${path} ${message}`))
  }
  return (
    <>
      <div class="filters">
        <SelectField
          label={words.importForm}
          value={form}
          options={Object.entries(words.forms) as ReadonlyArray<[Check.ModelForm, string]>}
          onChange={setForm}
        />
        <button
          type="button"
          class="button"
          disabled={metadata === undefined}
          onClick={() => download(`${productKey}.${form}.json`, convert(metadata!, form, productKey, version))}
        >
          {words.exportAs}
        </button>
        {canWrite("thingModels") && (
          <label class="button">
            {words.importFile}
            <input
              class="visually-hidden"
              type="file"
              accept=".json,application/json"
              onChange={(event) => {
                void read(event.currentTarget.files?.[0]).catch(tellFailure)
                event.currentTarget.value = ""
              }}
            />
          </label>
        )}
      </div>
      {issues.length > 0 && (
        <div class="notice bad" role="alert">
          <p>{words.invalid(issues.length)}</p>
          <ul>{issues.slice(0, 20).map((issue) => <li key={issue} class="wrap">{issue}</li>)}</ul>
        </div>
      )}
    </>
  )
}
