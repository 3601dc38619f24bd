/**
 * The fields of single values: numbers, times, and JSON for what is not known.
 */
import { useEffect, useState } from "preact/hooks"
import { useTexts } from "../../text/text.ts"
import { hasLargeNumber, parseJson } from "../Fields.tsx"
import { AreaField, type FieldProps, TextField } from "../Form.tsx"
import type { DataType } from "./Model.ts"

/** `value` is undefined while nothing is chosen. What cannot be read as the type is handed on as it was written. */
export interface ValueFieldProps extends FieldProps {
  readonly type: DataType
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly disabled?: boolean
}

/** What a slider can show: bounds, and not too many steps between them. */
const sliderSteps = 2000

/** A number with its bounds; a slider where they are near each other. */
export const NumberField = ({ disabled = false, onChange, type, value, ...field }: ValueFieldProps) => {
  const { common } = useTexts()
  const [text, setText] = useText(value, readNumber, (value) => String(value))
  const { max, min, unit, unitName } = type
  const step = type.step ?? (type.type === "int" ? 1 : undefined)
  const take = (typed: string) => {
    setText(typed)
    onChange(readNumber(typed))
  }
  const range = common.model.range(min, max, type.step, [unit, unitName].filter(Boolean).join(", "))
  const hasSlider = min !== undefined && max !== undefined && (max - min) / (step ?? (max - min) / 100) <= sliderSteps
  return (
    <div class="stack tight">
      <TextField
        {...field}
        hint={field.hint ?? (range === "" ? undefined : range)}
        type="number"
        step={step ?? "any"}
        {...min === undefined ? {} : { min }}
        {...max === undefined ? {} : { max }}
        inputMode={type.type === "int" ? "numeric" : "decimal"}
        disabled={disabled}
        value={text}
        onInput={take}
      />
      {hasSlider && (
        <input
          type="range"
          class="slider"
          aria-label={common.model.slider(field.label)}
          min={min}
          max={max}
          step={step ?? "any"}
          disabled={disabled}
          value={Number.isFinite(Number(text)) && text !== "" ? Number(text) : min}
          onInput={(event) => take(event.currentTarget.value)}
        />
      )}
    </div>
  )
}

const readNumber = (text: string): unknown => {
  if (text.trim() === "") return undefined
  return Number.isFinite(Number(text)) ? Number(text) : text
}

/** A value whose type is not known: JSON. */
export const JsonField = (
  { onChange, value, ...field }: Omit<ValueFieldProps, "type"> & { readonly type?: DataType }
) => {
  const { common } = useTexts()
  const [text, setText] = useText(value, readJson, (value) => JSON.stringify(value, null, 2))
  const isWrong = text.trim() !== "" && readJson(text) === undefined
  return (
    <AreaField
      {...field}
      holdsForm
      rows={4}
      hint={field.hint ?? "JSON"}
      issue={isWrong ? hasLargeNumber(text) ? common.numberTooLarge : common.model.notJson : field.issue}
      value={text}
      onInput={(typed) => {
        setText(typed)
        onChange(readJson(typed))
      }}
    />
  )
}

const readJson = (text: string): unknown => {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** What is typed, which need not be a value yet; it follows a value that somebody else gives. */
export const useText = (value: unknown, read: (text: string) => unknown, write: (value: unknown) => string) => {
  const written = value === undefined || value === null ? "" : write(value)
  const [text, setText] = useState(written)
  useEffect(() => {
    const isBeingTyped = text.trim() !== "" && read(text) === undefined
    if (!isBeingTyped && JSON.stringify(read(text)) !== JSON.stringify(value ?? undefined)) setText(written)
  }, [written])
  return [text, setText] as const
}

/** A time in the zone of the viewer; the model has Unix milliseconds as text. */
export const DateField = ({ onChange, value, ...field }: ValueFieldProps) => (
  <TextField
    {...field}
    type="datetime-local"
    step="1"
    value={localOf(value)}
    onInput={(text) => onChange(text === "" ? undefined : String(new Date(text).getTime()))}
  />
)

const localOf = (value: unknown): string =>
  value === undefined || value === null || value === "" ? "" : localTime(Number(value))

/**
 * Unix milliseconds as an input of type `datetime-local` has them: in the viewer's zone,
 * without naming it. Empty for what is no time there.
 */
export const localTime = (at: number): string => {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000)
  return Number.isNaN(local.getTime()) ? "" : local.toISOString().slice(0, 19)
}
