/**
 * Members as JSON: their types may be nested.
 */
import { useState } from "preact/hooks"
import { AreaField } from "../../../parts/Form.tsx"
import { useTexts } from "../../../text/text.ts"

export const FieldsText = (
  { label, onChange, onValid, value }: {
    readonly label: string
    readonly value: ReadonlyArray<unknown>
    readonly onChange: (value: ReadonlyArray<unknown>) => void
    readonly onValid: (isValid: boolean) => void
  }
) => {
  const { products: { model: words } } = useTexts()
  const [text, setText] = useState(JSON.stringify(value, null, 2))
  const isValid = parseList(text) !== undefined
  return (
    <AreaField
      label={label}
      hint={words.membersHint}
      issue={isValid ? undefined : words.membersHint}
      rows={6}
      value={text}
      onInput={(text) => {
        setText(text)
        const list = parseList(text)
        onValid(list !== undefined)
        if (list !== undefined) onChange(list)
      }}
    />
  )
}

const parseList = (text: string): ReadonlyArray<unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
