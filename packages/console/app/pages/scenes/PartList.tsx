/**
 * The triggers, conditions or actions of a scene.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { SelectField } from "../../parts/Form.tsx"
import { Card } from "../../parts/Page.tsx"
import { SteadyButton } from "../../parts/SteadyButton.tsx"
import { useTexts } from "../../text/text.ts"
import { kinds, type Part, type PartRole } from "./draft.ts"
import { PartFields } from "./PartFields.tsx"

export const PartList = (
  { onChange, parts, role }: {
    readonly role: PartRole
    readonly parts: ReadonlyArray<Part>
    readonly onChange: (parts: ReadonlyArray<Part>) => void
  }
) => {
  const { common, scenes } = useTexts()
  const options = Object.keys(kinds[role]).map((uri) => [uri, scenes.kinds[uri] ?? uri] as const)
  const [chosen, setChosen] = useState(options[0]![0])
  const list = useRef<HTMLOListElement>(null)
  const [moved, setMoved] = useState<{ readonly to: number; readonly button: number }>()
  // The focus goes with what is moved, so that one can move it on.
  useEffect(() => {
    if (moved === undefined) return
    list.current?.children[moved.to]?.querySelectorAll<HTMLElement>(".part-head button")[moved.button]?.focus()
  }, [moved])
  const move = (from: number, by: -1 | 1) => {
    const to = from + by
    onChange(parts.toSpliced(from, 1).toSpliced(to, 0, parts[from]!))
    setMoved({ to, button: by === -1 ? 0 : 1 })
  }
  return (
    <Card title={scenes[role]}>
      <p class="soft">{scenes[`${role}Hint`]}</p>
      {parts.length > 0 && <ol class="stack" ref={list}>
        {parts.map((part, index) => {
          const title = `${index + 1}. ${scenes.kinds[part.URI] ?? part.URI}`
          return (
            <li key={`${index} ${part.URI}`}>
              <fieldset class="stack tight element" aria-label={title}>
                <div class="row apart part-head">
                  <h3>{title}</h3>
                  <span class="row">
                    {role === "actions" && parts.length > 1 && (
                      <>
                        <SteadyButton
                          label={`${scenes.up}: ${title}`}
                          isOff={index === 0}
                          onClick={() => move(index, -1)}
                        >
                          ↑
                        </SteadyButton>
                        <SteadyButton
                          label={`${scenes.down}: ${title}`}
                          isOff={index === parts.length - 1}
                          onClick={() => move(index, 1)}
                        >
                          ↓
                        </SteadyButton>
                      </>
                    )}
                    <button
                      type="button"
                      class="button small danger"
                      aria-label={`${common.remove}: ${title}`}
                      onClick={({ currentTarget }) => {
                        currentTarget.closest("section")?.querySelector<HTMLElement>(".filters select")?.focus()
                        onChange(parts.toSpliced(index, 1))
                      }}
                    >
                      {common.remove}
                    </button>
                  </span>
                </div>
                <PartFields
                  part={part}
                  path={`${role}[${index}]`}
                  onChange={(changed) => onChange(parts.with(index, changed))}
                />
              </fieldset>
            </li>
          )
        })}
      </ol>}
      <div class="filters">
        <SelectField label={scenes.addTo[role]} value={chosen} options={options} onChange={setChosen} />
        <button
          type="button"
          class="button"
          aria-label={`${scenes.add}: ${scenes[role]}`}
          onClick={() => onChange([...parts, { URI: chosen, params: kinds[role][chosen]! }])}
        >
          {scenes.add}
        </button>
      </div>
    </Card>
  )
}
