/**
 * The thing model of a product: as a form, and as its source beside it.
 */
import { useEffect, useMemo, useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { canOperate } from "../../../api/session.ts"
import { useQuery } from "../../../api/useQuery.ts"
import { ask } from "../../../parts/Dialog.tsx"
import { AreaField } from "../../../parts/Form.tsx"
import { Card } from "../../../parts/Page.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { tell, tellFailure } from "../../../parts/toasts.tsx"
import { useUnsavedWarning } from "../../../parts/useUnsavedWarning.ts"
import { useTexts } from "../../../text/text.ts"
import type * as Check from "./check.ts"
import { Breaks, Comparison } from "./Comparison.tsx"
import { Elements } from "./Elements.tsx"
import { ImportExport } from "./ImportExport.tsx"

export const ModelEditor = ({ productKey }: { readonly productKey: string }) => {
  const query = useQuery(async (signal) => {
    const [check, { thing_model, version }] = await Promise.all([
      import("./check.ts"),
      api.thingModels.getThingModel({ params: { product_key: productKey }, query: { model_type: "metadata" }, signal })
    ])
    const checked = check.check("metadata", JSON.stringify(thing_model))
    return { check, version, stored: checked.isValid ? checked.metadata : check.pretty(thing_model) }
  }, [productKey])
  return (
    <Shown query={query}>
      {(data) => <Editor key={productKey} {...data} productKey={productKey} reload={query.reload} />}
    </Shown>
  )
}

const Editor = (
  { check, productKey, reload, stored, version }: {
    readonly check: typeof Check
    readonly productKey: string
    readonly stored: string
    readonly version: number
    readonly reload: () => void
  }
) => {
  const { products: { model: words } } = useTexts()
  const [source, setSource] = useState(stored)
  const [base, setBase] = useState({ stored, version })
  const [isSaving, setSaving] = useState(false)
  const checked = useMemo(() => check.check("metadata", source), [source])
  const isChanged = checked.isValid ? checked.metadata !== base.stored : source !== base.stored
  const isOutdated = version !== base.version

  // What somebody else saves is taken over while nothing is edited here.
  useEffect(() => {
    if (!isChanged) {
      setSource(stored)
      setBase({ stored, version })
    }
  }, [stored, version])
  useUnsavedWarning(isChanged)

  const save = async () => {
    const { version } = await api.thingModels.importThingModel({
      params: { product_key: productKey },
      payload: { model_type: "metadata", model_data: source }
    })
    setBase({ stored: checked.isValid ? checked.metadata : source, version })
    tell(words.savedAs(version))
    reload()
  }
  const askSave = () => {
    const breaks = checked.isValid ? check.compare(base.stored, checked.metadata).breaks : []
    if (breaks.length === 0) {
      if (isSaving) return
      setSaving(true)
      return save().catch(tellFailure).finally(() => setSaving(false))
    }
    ask({ title: words.askSaveTitle, body: <Breaks breaks={breaks} />, action: words.save, danger: true, run: save })
  }

  return (
    <div class="stack">
      <ImportExport
        check={check}
        productKey={productKey}
        metadata={checked.isValid ? checked.metadata : undefined}
        version={version}
        onImport={(metadata, warnings) => {
          setSource(metadata)
          tell([words.imported, ...warnings].join(" "))
        }}
      />
      {!canOperate.value && <p class="notice">{words.viewer}</p>}
      {isOutdated && isChanged && <p class="notice warn" role="alert">{words.savedMeanwhile}</p>}
      <div class="halves">
        <Card title={words.form}>
          <Elements source={source} onChange={setSource} />
        </Card>
        <Card>
          <AreaField label={words.source} rows={26} value={source} onInput={setSource} />
          <div role="status">
            {checked.isValid
              ? <p class="good">{words.valid}</p>
              : (
                <>
                  <p class="bad">{words.invalid(checked.issues.length)}</p>
                  <ul class="stack tight">
                    {checked.issues.map(({ message, path }) => (
                      <li key={`${path} ${message}`} class="wrap"><code>{path}</code> {message}</li>
                    ))}
                  </ul>
                </>
              )}
          </div>
        </Card>
      </div>
      {isChanged && checked.isValid && (
        <Card title={words.comparison}>
          <Comparison difference={check.compare(base.stored, checked.metadata)} />
        </Card>
      )}
      {canOperate.value && (
        <div class="row end">
          {!isChanged && <span class="soft">{words.unchanged}</span>}
          <button
            type="button"
            class="button"
            disabled={!isChanged}
            onClick={() => {
              setSource(stored)
              setBase({ stored, version })
            }}
          >
            {words.discard}
          </button>
          <button
            type="button"
            class="button primary"
            disabled={!isChanged || !checked.isValid}
            aria-disabled={isSaving}
            onClick={() => void askSave()}
          >
            {words.save}
          </button>
        </div>
      )}
    </div>
  )
}
