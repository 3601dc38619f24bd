/**
 * Values as their thing model means them: with labels and units.
 */
import { formatFigure } from "../../text/text.ts"
import { Json, Time } from "../Small.tsx"
import { type DataType, isNumber, itemOf, labelsOf, membersOf } from "./Model.ts"

/** `type` is undefined for what no model knows. */
export const ModelValue = (
  { type, value }: { readonly type: DataType | undefined; readonly value: unknown }
) => {
  if (type === undefined || value === null || value === undefined) return <Json value={value} />
  if (type.type === "date" && isTime(value)) return <Time at={new Date(Number(value)).toISOString()} />
  if (type.type === "struct" && isMembers(value)) return <Members fields={value} type={type} />
  if (type.type === "array" && Array.isArray(value)) return <Items items={value as ReadonlyArray<unknown>} type={type} />
  const text = textOf(type, value)
  return text === undefined ? <Json value={value} /> : <span class="wrap">{text}</span>
}

/** A value of a simple type on one line, with its label or unit. Undefined: it does not fit the type. */
export const textOf = (type: DataType, value: unknown): string | undefined => {
  const labels = labelsOf(type)
  if (labels !== undefined) return labels[Number(value)]
  if (isNumber(type) && typeof value === "number") return withUnit(formatFigure(value), type)
  if (type.type === "bool") return String(value)
  return type.type === "text" && typeof value === "string" ? value : undefined
}

export const withUnit = (text: string, { unit }: DataType): string => unit ? `${text} ${unit}` : text

const isTime = (value: unknown): boolean => value !== "" && Number.isFinite(Number(value)) && Math.abs(Number(value)) <= 8.64e15

const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const Members = ({ fields, type }: { readonly fields: Readonly<Record<string, unknown>>; readonly type: DataType }) => {
  const known = new Map(membersOf(type).map((member) => [member.id, member]))
  return (
    <ul>
      {Object.entries(fields).map(([id, value]) => (
        <li key={id}>
          <span class="soft">{known.get(id)?.name ?? id}</span> <ModelValue type={known.get(id)?.dataType} value={value} />
        </li>
      ))}
    </ul>
  )
}

const Items = ({ items, type }: { readonly items: ReadonlyArray<unknown>; readonly type: DataType }) => {
  const item = itemOf(type)
  const texts = items.map((value) => textOf(item, value))
  if (items.length > 0 && texts.every((text) => text !== undefined)) {
    return <span class="wrap">{texts.join(", ")}</span>
  }
  return items.length === 0
    ? <Json value={items} />
    : <ol class="stack tight">{items.map((value, index) => <li key={index}><ModelValue type={item} value={value} /></li>)}</ol>
}
