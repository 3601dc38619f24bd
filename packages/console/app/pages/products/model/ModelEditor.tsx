/**
 * The thing model of a product: as a form, and as its source beside it.
 */
import { useMemo, useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { canWrite, may } from "../../../api/session.ts"
import { useQuery } from "../../../api/useQuery.ts"
import { ask } from "../../../parts/Dialog.tsx"
import { AreaField } from "../../../parts/Form.tsx"
import { loadPart } from "../../../parts/loadPart.ts"
import { Card } from "../../../parts/Page.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { tell, tellFailure } from "../../../parts/toasts.tsx"
import { useStored } from "../../../parts/useStored.ts"
import { useUnsavedWarning } from "../../../parts/useUnsavedWarning.ts"
import { useTexts } from "../../../text/text.ts"
import type * as Check from "./check.ts"
import { Breaks, Comparison } from "./Comparison.tsx"
import { Elements } from "./Elements.tsx"
import { ImportExport } from "./ImportExport.tsx"

/** A version of the model, in the form `metadata`. */
interface StoredModel {
  readonly source: string
  readonly version: number
}

export const ModelEditor = ({ productKey }: { readonly productKey: string }) => {
  const query = useQuery(async (signal) => {
    const check = await loadPart(() => import("./check.ts"))
    return { check, stored: await readModel(check, productKey, signal) }
  }, [productKey])
  return (
    <Shown query={query}>
      {(data) => <Editor key={productKey} {...data} productKey={productKey} reload={query.reload} />}
    </Shown>
  )
}

const readModel = async (check: typeof Check, product_key: string, signal?: AbortSignal): Promise<StoredModel> => {
  const { thing_model, version } = await api.thingModels.getThingModel({
    params: { product_key },
    query: { model_type: "metadata" },
    ...signal === undefined ? {} : { signal }
  })
  const checked = check.check("metadata", JSON.stringify(thing_model))
  return { version, source: checked.isValid ? checked.metadata : check.pretty(thing_model) }
}

const Editor = (
  { check, productKey, reload, stored }: {
    readonly check: typeof Check
    readonly productKey: string
    readonly stored: StoredModel
    readonly reload: () => void
  }
) => {
  const { common, products: { model: words } } = useTexts()
  const [source, setSource] = useState(stored.source)
  const [isSaving, setSaving] = useState(false)
  const checked = useMemo(() => check.check("metadata", source), [source])
  const written = checked.isValid ? checked.metadata : source
  const { base, newer, save: store } = useStored(stored, {
    idOf: ({ version }) => version,
    isChanged: (base) => written !== base.source,
    take: ({ source }) => setSource(source)
  })
  const isChanged = written !== base.source
  useUnsavedWarning(isChanged)

  const save = async () => {
    const saved = await store(() => readModel(check, productKey), async () => {
      const { version } = await api.thingModels.importThingModel({
        params: { product_key: productKey },
        payload: { model_type: "metadata", model_data: source }
      })
      return { source: written, version }
    })
    if (saved !== undefined) tell(words.savedAs(saved.version))
    reload()
  }
  const askSave = () => {
    const breaks = checked.isValid ? check.compare(base.source, checked.metadata).breaks : []
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
        version={base.version}
        onImport={(metadata, warnings) => {
          setSource(metadata)
          tell([words.imported, ...warnings].join(" "))
        }}
      />
      {!canWrite("thingModels") && <p class="notice">{may("operator") ? common.notByKey : words.viewer}</p>}
      {newer !== undefined && <p class="notice warn" role="alert">{words.savedMeanwhile}</p>}
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
          <Comparison difference={check.compare(base.source, checked.metadata)} />
        </Card>
      )}
      {canWrite("thingModels") && (
        <div class="row end">
          {!isChanged && <span class="soft">{words.unchanged}</span>}
          <button
            type="button"
            class="button"
            disabled={!isChanged}
            onClick={() => setSource(base.source)}
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
