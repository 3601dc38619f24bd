/**
 * The field for a value of a thing model: its control follows from the type.
 */
import { useContext } from "preact/hooks"
import { useTexts } from "../../text/text.ts"
import { type FieldProps, FormIssues, SelectField, TextField } from "../Form.tsx"
import { firstOf, isNumber, itemOf, labelsOf, membersOf, type ModelField } from "./Model.ts"
import { DateField, JsonField, NumberField, type ValueFieldProps } from "./ScalarFields.tsx"

/** Its control follows from `type`: numbers with their bounds, labels to choose from, lists that grow. */
export const ValueField = (props: ValueFieldProps) => {
  const { disabled = false, onChange, type, value, ...field } = props
  const { common } = useTexts()
  if (isNumber(type)) return <NumberField {...props} />
  switch (type.type) {
    case "bool":
    case "enum": {
      const labels = Object.entries(labelsOf(type) ?? { 0: "0", 1: "1" })
      const chosen = value === undefined || value === null ? "" : String(value === true ? 1 : value === false ? 0 : value)
      const isKnown = chosen === "" || labels.some(([number]) => number === chosen)
      return (
        <SelectField
          {...field}
          disabled={disabled}
          value={chosen}
          options={[
            ...chosen === "" ? [["", "–"] as const] : [],
            ...labels,
            ...isKnown ? [] : [[chosen, chosen] as const]
          ]}
          onChange={(number) => onChange(number === "" ? undefined : Number(number))}
        />
      )
    }
    case "text":
      return (
        <TextField
          {...field}
          hint={field.hint ?? (type.length === undefined ? undefined : common.model.bytes(type.length))}
          disabled={disabled}
          value={value === undefined || value === null ? "" : String(value)}
          onInput={onChange}
        />
      )
    case "date":
      return <DateField {...props} />
    case "struct":
      return (
        <FieldsOf
          {...field}
          fields={membersOf(type)}
          disabled={disabled}
          values={typeof value === "object" && value !== null ? value as Readonly<Record<string, unknown>> : {}}
          onChange={onChange}
        />
      )
    case "array":
      return <ArrayField {...props} items={Array.isArray(value) ? value as ReadonlyArray<unknown> : []} />
    default:
      return <JsonField {...props} />
  }
}

/** The path of a member, of which the server says what is wrong. */
const below = (path: string | undefined, member: string) => path === undefined ? {} : { path: path + member }

/** A group of fields under one name. The server says what is wrong with it as a whole, or with a member. */
export const FieldsOf = (
  { disabled = false, fields, hint, issue, label, onChange, path, values }: FieldProps & {
    readonly fields: ReadonlyArray<ModelField>
    readonly values: Readonly<Record<string, unknown>>
    readonly onChange: (values: Readonly<Record<string, unknown>>) => void
    readonly disabled?: boolean
  }
) => (
  <fieldset class="field compound">
    <legend>{label}</legend>
    <Own {...{ hint, issue, path } as Pick<FieldProps, "hint" | "issue" | "path">} />
    <div class="stack tight">
      {fields.map(({ dataType, id, name }) => (
        <ValueField
          key={id}
          {...below(path, `.${id}`)}
          label={name}
          type={dataType}
          disabled={disabled}
          value={values[id]}
          onChange={(value) => onChange(withMember(values, id, value))}
        />
      ))}
    </div>
  </fieldset>
)

/** A member without a value is left out. */
const withMember = (values: Readonly<Record<string, unknown>>, id: string, value: unknown) => {
  const { [id]: _, ...others } = values
  return value === undefined ? others : { ...values, [id]: value }
}

export const ArrayField = (
  { disabled = false, hint, issue, items, label, onChange, path, type }: ValueFieldProps & {
    readonly items: ReadonlyArray<unknown>
  }
) => {
  const { common } = useTexts()
  const item = itemOf(type)
  const isFull = type.size !== undefined && items.length >= type.size
  return (
    <fieldset class="field compound">
      <legend>{label}</legend>
      <Own
        {...{ issue, path } as Pick<FieldProps, "issue" | "path">}
        hint={hint ?? (type.size === undefined ? undefined : common.model.items(items.length, type.size))}
      />
      <div class="stack tight">
        {items.map((value, index) => (
          <div class="item" key={index}>
            <ValueField
              {...below(path, `[${index}]`)}
              label={common.model.item(label, index + 1)}
              type={item}
              disabled={disabled}
              value={value}
              onChange={(changed) => onChange(items.with(index, changed ?? null))}
            />
            <button
              type="button"
              class="button small"
              disabled={disabled}
              aria-label={common.model.removeItem(label, index + 1)}
              onClick={({ currentTarget }) => {
                currentTarget.closest("fieldset")?.querySelector<HTMLElement>(":scope > .stack > button")?.focus()
                onChange(items.filter((_, other) => other !== index))
              }}
            >
              {common.remove}
            </button>
          </div>
        ))}
        <button
          type="button"
          class="button small"
          disabled={disabled}
          aria-disabled={isFull}
          aria-label={common.model.addItem(label)}
          onClick={() => isFull || onChange([...items, firstOf(item)])}
        >
          {common.model.add}
        </button>
      </div>
    </fieldset>
  )
}

/** What holds for the group itself, and what the server says of it. */
const Own = ({ hint, issue, path }: Pick<FieldProps, "hint" | "issue" | "path">) => {
  const issues = useContext(FormIssues)
  const found = [...issue === undefined ? [] : [issue], ...path === undefined ? [] : issues[path] ?? []]
  return (
    <>
      {found.length > 0 && <p class="issue" role="alert">{found.join(". ")}</p>}
      {hint !== undefined && <p class="hint">{hint}</p>}
    </>
  )
}
