/**
 * Tables.
 */
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"
import { useTexts } from "../text/text.ts"

/** A column of a table. */
export interface Column<Row> {
  readonly id: string
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  /** Numbers stand at the right; what is tight takes no more room than it needs. */
  readonly kind?: "number" | "tight"
}

/** Which rows are selected, by key. */
export interface Selection {
  readonly keys: ReadonlySet<string>
  readonly onChange: (keys: ReadonlySet<string>) => void
  /** What can be done with them; it stands above the table while there are any. */
  readonly actions: ComponentChildren
}

/** `caption` says what the table lists, for those who do not see it. */
export const Table = <Row,>(
  { caption, columns, keyOf, nameOf = keyOf, rows, selection }: {
    readonly caption: string
    readonly columns: ReadonlyArray<Column<Row>>
    readonly rows: ReadonlyArray<Row>
    readonly keyOf: (row: Row) => string
    readonly nameOf?: (row: Row) => string
    readonly selection?: Selection | undefined
  }
) => {
  const { common } = useTexts()
  const keys = rows.map(keyOf)
  const areAllSelected = selection !== undefined && keys.length > 0 && keys.every((key) => selection.keys.has(key))
  const toggle = (toggled: ReadonlyArray<string>, isOn: boolean) => {
    const next = new Set(selection?.keys)
    for (const key of toggled) {
      if (isOn) next.add(key)
      else next.delete(key)
    }
    selection?.onChange(next)
  }
  const whole = useRef<HTMLDivElement>(null)
  const frame = useRef<HTMLDivElement>(null)
  const hadFocus = whole.current?.contains(document.activeElement) === true
  const goOn = () => frame.current!.focus({ preventScroll: true })
  // A row or an action that had the focus is gone: one goes on in the table.
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) goOn()
  })
  return (
    <div
      class="stack"
      ref={whole}
      // A dialog that closes when its button is gone gives the focus to what stood around the button.
      tabIndex={-1}
      onFocus={({ currentTarget, target }) => target === currentTarget && goOn()}
    >
      {selection?.actions}
      <div class="table-frame" tabIndex={0} role="region" aria-label={caption} ref={frame}>
        <table>
          <caption class="visually-hidden">{caption}</caption>
          <thead>
            <tr>
              {selection !== undefined && (
                <th class="tight">
                  <input
                    type="checkbox"
                    aria-label={common.selectAll}
                    checked={areAllSelected}
                    onChange={(event) => toggle(keys, event.currentTarget.checked)}
                  />
                </th>
              )}
              {columns.map(({ id, kind, title }) => <th key={id} scope="col" class={kind ?? ""}>{title}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const key = keyOf(row)
              const isSelected = selection?.keys.has(key) === true
              return (
                <tr key={key} {...selection === undefined ? {} : { "aria-selected": isSelected }}>
                  {selection !== undefined && (
                    <td class="tight">
                      <input
                        type="checkbox"
                        aria-label={common.selectRow(nameOf(row))}
                        checked={isSelected}
                        onChange={(event) => toggle([key], event.currentTarget.checked)}
                      />
                    </td>
                  )}
                  {columns.map(({ cell, id, kind }) => <td key={id} class={kind ?? ""}>{cell(row)}</td>)}
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </div>
  )
}
