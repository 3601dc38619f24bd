/**
 * The elements of a model as a form. The source is what counts: a change here
 * writes it anew.
 */
import { useState } from "preact/hooks"
import { canWrite } from "../../../api/session.ts"
import { Dialog } from "../../../parts/Dialog.tsx"
import { Badge } from "../../../parts/Small.tsx"
import { useTexts } from "../../../text/text.ts"
import { ElementForm } from "./ElementForm.tsx"
import { type List, lists, type ModelElement } from "./ModelElement.ts"

type Model = Readonly<Partial<Record<List, ReadonlyArray<ModelElement>>>>

export const Elements = (
  { onChange, source }: { readonly source: string; readonly onChange: (source: string) => void }
) => {
  const { common, products: { model: words } } = useTexts()
  const [edited, setEdited] = useState<{ readonly list: List; readonly index: number }>()
  const model = parse(source)
  if (model === undefined) return <p class="notice warn">{words.notJson}</p>
  const elementsOf = (list: List) => model[list] ?? []
  const write = (list: List, elements: ReadonlyArray<ModelElement>) =>
    onChange(JSON.stringify({ ...model, [list]: elements }, null, 2))
  const isEmpty = lists.every((list) => elementsOf(list).length === 0)
  return (
    <div class="stack">
      {isEmpty && <p class="soft">{words.emptyHint}</p>}
      {lists.map((list) => (
        <section key={list} class="stack tight">
          <div class="row apart">
            <h3>{words[list]}</h3>
            {canWrite("thingModels") && (
              <button
                type="button"
                class="button small"
                onClick={() => setEdited({ list, index: elementsOf(list).length })}
              >
                {words.add[list]}
              </button>
            )}
          </div>
          <ul class="stack tight">
            {elementsOf(list).map((element, index) => (
              <li key={index} class="row apart element">
                <span class="wrap">
                  <strong>{element.name}</strong> <code>{element.id}</code> <Badge>{summaryOf(element)}</Badge>
                </span>
                {canWrite("thingModels") && (
                  <span class="row">
                    <button
                      type="button"
                      class="button small"
                      aria-label={`${common.edit} ${element.id}`}
                      onClick={() => setEdited({ list, index })}
                    >
                      {common.edit}
                    </button>
                    <button
                      type="button"
                      class="button small danger"
                      aria-label={`${common.remove} ${element.id}`}
                      onClick={({ currentTarget }) => {
                        currentTarget.closest("section")?.querySelector("button")?.focus()
                        write(list, elementsOf(list).toSpliced(index, 1))
                      }}
                    >
                      {common.remove}
                    </button>
                  </span>
                )}
              </li>
            ))}
          </ul>
        </section>
      ))}
      {edited !== undefined && (
        <Dialog title={words[edited.list]} onClose={() => setEdited(undefined)}>
          <ElementForm
            list={edited.list}
            element={elementsOf(edited.list)[edited.index]}
            onCancel={() => setEdited(undefined)}
            onSave={(element) => {
              write(edited.list, elementsOf(edited.list).toSpliced(edited.index, 1, element))
              setEdited(undefined)
            }}
          />
        </Dialog>
      )}
    </div>
  )
}

const summaryOf = ({ accessMode, callType, dataType, eventType }: ModelElement): string =>
  [dataType?.type, accessMode, eventType, callType].filter((part) => part !== undefined).join(" · ")

/** The model that the source is; undefined while it is none. */
const parse = (source: string): Model | undefined => {
  try {
    const value: unknown = JSON.parse(source)
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
    const areLists = lists.every((list) => {
      const elements = (value as Readonly<Record<string, unknown>>)[list] ?? []
      return Array.isArray(elements) && elements.every((element) => typeof element === "object" && element !== null)
    })
    return areLists ? value as Model : undefined
  } catch {
    return undefined
  }
}
