/**
 * The type of a value with its bounds.
 */
import { useState } from "preact/hooks"
import { AreaField, SelectField, TextField } from "../../../parts/Form.tsx"
import { type DataType, isNumber, labelsOf, membersOf } from "../../../parts/model/Model.ts"
import { NumberField } from "../../../parts/model/ScalarFields.tsx"
import { useTexts } from "../../../text/text.ts"
import { FieldsText } from "./FieldsText.tsx"

const types = ["int", "float", "double", "bool", "enum", "text", "date", "struct", "array"] as const
const itemTypes = ["int", "float", "double", "text", "struct"] as const

/** A bound may be any number: the check of the model says what does not fit its type. */
const anyNumber: DataType = { type: "double" }

/** What a type begins with when it is chosen. */
const firsts: Readonly<Partial<Record<string, DataType>>> = {
  bool: { type: "bool", specs: { 0: "off", 1: "on" } },
  enum: { type: "enum", specs: { 0: "first", 1: "second" } },
  text: { type: "text", length: 256 },
  struct: { type: "struct", specs: [] },
  array: { type: "array", size: 10, elementType: "int" }
}

export const DataTypeFields = (
  { onChange, onValid, value }: {
    readonly value: DataType
    readonly onChange: (value: DataType) => void
    readonly onValid: (isValid: boolean) => void
  }
) => {
  const { products: { model: words } } = useTexts()
  const number = (field: "min" | "max" | "step" | "length" | "size", label: string) => (
    // It keeps what is typed: on the way to 0.05 one types 0.0, which is the number 0.
    <NumberField
      label={label}
      type={anyNumber}
      value={value[field]}
      onChange={(number) => onChange(withField(value, field, number as number | undefined))}
    />
  )
  const labels = labelsOf(value)
  return (
    <>
      <SelectField
        label={words.type}
        value={value.type}
        options={types.map((type) => [type, type] as const)}
        onChange={(type) => {
          onValid(true)
          onChange(firsts[type] ?? { type })
        }}
      />
      {isNumber(value) && (
        <div class="filters">
          {number("min", words.min)}
          {number("max", words.max)}
          {number("step", words.step)}
          <TextField
            label={words.unit}
            value={value.unit ?? ""}
            onInput={(unit) => onChange(withField(value, "unit", unit || undefined))}
          />
        </div>
      )}
      {labels !== undefined && (
        <LabelsText
          key={value.type}
          value={labels}
          onValid={onValid}
          onChange={(specs) => onChange({ ...value, specs })}
        />
      )}
      {value.type === "text" && number("length", words.length)}
      {value.type === "array" && (
        <div class="filters">
          {number("size", words.size)}
          <SelectField
            label={words.items}
            value={value.elementType ?? "int"}
            options={itemTypes.map((type) => [type, type] as const)}
            onChange={(elementType) => {
              onValid(true)
              onChange({ type: "array", size: value.size ?? 10, elementType })
            }}
          />
        </div>
      )}
      {(value.type === "struct" || value.elementType === "struct") && (
        <FieldsText
          label={words.members}
          value={membersOf(value)}
          onValid={onValid}
          onChange={(specs) => onChange({ ...value, specs: specs as NonNullable<DataType["specs"]> })}
        />
      )}
    </>
  )
}

/** Without the field, if it has no value. */
const withField = (type: DataType, field: keyof DataType, value: number | string | undefined): DataType =>
  Object.fromEntries(
    Object.entries({ ...type, [field]: value }).filter(([, value]) => value !== undefined)
  ) as unknown as DataType

const LabelsText = (
  { onChange, onValid, value }: {
    readonly value: Readonly<Record<string, string>>
    readonly onChange: (value: Readonly<Record<string, string>>) => void
    readonly onValid: (isValid: boolean) => void
  }
) => {
  const { products: { model: words } } = useTexts()
  const [text, setText] = useState(Object.entries(value).map(([number, label]) => `${number}: ${label}`).join("\n"))
  return (
    <AreaField
      label={words.labels}
      hint={words.labelsHint}
      issue={parseLabels(text) === undefined ? words.labelsHint : undefined}
      rows={4}
      value={text}
      onInput={(text) => {
        setText(text)
        const labels = parseLabels(text)
        onValid(labels !== undefined)
        if (labels !== undefined) onChange(labels)
      }}
    />
  )
}

/** Undefined: a line is no label. */
const parseLabels = (text: string): Readonly<Record<string, string>> | undefined => {
  const lines = text.split("\n").filter((line) => line.trim() !== "")
  if (!lines.every((line) => line.includes(":"))) return undefined
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(":")
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    })
  )
}
