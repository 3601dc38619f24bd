/**
 * Templates of the bodies of webhooks: JSON in which `{{name}}` stands for a
 * value (docs/api/scenes.md). Inside a text of the JSON the value becomes a part
 * of that text, escaped; elsewhere it is a JSON value. Whatever devices report, the
 * body is JSON of the form that the template shows.
 */
import type { Json } from "../../kernel/Json.ts"

/** UTF-16 code units of a template at most. */
export const maxTemplate = 8192

/** UTF-16 code units of a body at most. */
export const maxBody = 262_144

/** The variables. After `data.` follows the name of a member of the data. */
const names = [
  "scene_id",
  "scene_name",
  "execution_id",
  "trigger",
  "product_key",
  "device_name",
  "device_id",
  "data",
  "timestamp",
  "time"
] as const

type VariableName = typeof names[number]

/** The value of each variable. */
export type Variables = Readonly<Record<VariableName, Json>>

const placeholder = /\{\{([^{}]*)\}\}/g

const dataMember = /^data\.(.+)$/s

const isVariable = (name: string): boolean => names.some((known) => known === name) || dataMember.test(name)

/** Returns the value of a variable; null: the data has no such member. */
const valueOf = (name: string, variables: Variables): Json => {
  const member = dataMember.exec(name)?.[1]
  if (member === undefined) return variables[name as VariableName]
  const { data } = variables
  return typeof data === "object" && data !== null && Object.hasOwn(data, member)
    ? (data as Readonly<Record<string, Json>>)[member]!
    : null
}

/** Writes a value into a text of the JSON. */
const escaped = (value: Json): string => {
  const text = value === null ? "" : typeof value === "string" ? value : JSON.stringify(value)
  return JSON.stringify(text).slice(1, -1)
}

/** Whether a text of the JSON is open at the end of the part, if it was at its beginning. */
const isTextOpen = (part: string, before: boolean): boolean => {
  let isOpen = before
  for (let i = 0; i < part.length; i++) {
    if (isOpen && part[i] === "\\") i++
    else if (part[i] === "\"") isOpen = !isOpen
  }
  return isOpen
}

/** Returns the body; undefined: it would be longer than {@link maxBody}. */
export const renderBody = (template: string, variables: Variables): string | undefined => {
  let body = ""
  let end = 0
  let inText = false
  for (const { 0: whole, 1: name = "", index } of template.matchAll(placeholder)) {
    const part = template.slice(end, index)
    inText = isTextOpen(part, inText)
    const value = valueOf(name.trim(), variables)
    body += part + (inText ? escaped(value) : JSON.stringify(value))
    if (body.length > maxBody) return undefined
    end = index + whole.length
  }
  return body + template.slice(end)
}

const each = (value: Json) => Object.fromEntries(names.map((name) => [name, value])) as Variables

/** One of them makes no JSON if a placeholder follows a backslash or stands inside of an escape. */
const probes = [each(null), each("x")]

/** Returns why the text is no template. */
export const refuseTemplate = (template: string): string | undefined => {
  for (const [, name = ""] of template.matchAll(placeholder)) {
    if (!isVariable(name.trim())) {
      return `Expected one of the variables ${names.join(", ")}, data.<member>; there is no ${name.trim()}`
    }
  }
  try {
    for (const probe of probes) JSON.parse(renderBody(template, probe)!)
    return undefined
  } catch {
    return "Expected JSON, in which {{variable}} stands for a value or a part of a text"
  }
}
