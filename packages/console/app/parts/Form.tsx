/**
 * Forms: fields with their names, hints, and what the server says is wrong with them.
 */
import type { ComponentChildren, PartialInputHTMLAttributes } from "preact"
import { createContext } from "preact"
import { useContext, useId, useRef, useState } from "preact/hooks"
import type { ApiError, Issues } from "../api/ApiError.ts"
import { noticeEnd } from "../api/session.ts"
import { asApiError } from "../api/useQuery.ts"
import { useTexts } from "../text/text.ts"
import { Failure } from "./Shown.tsx"
import { tellFailure } from "./toasts.tsx"

/** What the server has found wrong with the fields of the form around. */
export const FormIssues = createContext<Issues>({})

/**
 * Sends once, however often one clicks. When the server refuses, its sentence
 * stands above the buttons, each refused field is marked, and the first gets the focus.
 */
export const Form = (
  { children, danger = false, disabled = false, onCancel, onSubmit, submit }: {
    readonly submit: string
    readonly onSubmit: () => Promise<unknown>
    readonly onCancel?: (() => void) | undefined
    readonly danger?: boolean
    readonly disabled?: boolean
    readonly children?: ComponentChildren
  }
) => {
  const { common } = useTexts()
  const [error, setError] = useState<ApiError>()
  const [isPending, setPending] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const send = async (event: Event) => {
    event.preventDefault()
    if (isPending || disabled) return
    // A number or a time that is half typed reads as an empty text, an empty text as the number 0, and JSON as nothing.
    const unread = [...form.current!.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>("input, textarea")]
      .find(({ type, validity }) =>
        validity.badInput || validity.customError || type === "number" && validity.valueMissing
      )
    if (unread !== undefined) {
      unread.reportValidity()
      return
    }
    setPending(true)
    setError(undefined)
    try {
      await onSubmit()
    } catch (caught) {
      noticeEnd(caught)
      // Who has closed the form hears of it all the same.
      if (form.current === null) return tellFailure(caught)
      setError(asApiError(caught))
      setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus())
    }
    setPending(false)
  }
  return (
    <form class="stack" ref={form} onSubmit={send} noValidate>
      <FormIssues.Provider value={error?.issues ?? {}}>
        {children}
      </FormIssues.Provider>
      {error !== undefined && <Failure error={error} />}
      <div class="row end">
        {onCancel !== undefined && <button type="button" class="button" onClick={onCancel}>{common.cancel}</button>}
        {/* One that is disabled would lose the focus. */}
        <button
          type="submit"
          class={danger ? "button primary danger" : "button primary"}
          aria-disabled={isPending || disabled}
        >
          {submit}
        </button>
      </div>
    </form>
  )
}

/** What all fields have. */
export interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  /** The path of the field in the body, by which the server names it, or a line or a member of it. */
  readonly path?: string
  /** What the page itself finds wrong while one types. */
  readonly issue?: string | undefined
  readonly required?: boolean
}

/** A label, the control that `children` makes, and what is wrong. */
export const Field = (
  { children, hint, issue, label, path, required = false }: FieldProps & {
    readonly children: (control: {
      readonly id: string
      readonly "aria-invalid": "true" | "false"
      readonly "aria-describedby"?: string
      readonly "aria-required": "true" | "false"
    }) => ComponentChildren
  }
) => {
  const { common } = useTexts()
  const id = useId()
  const issues = useContext(FormIssues)
  const found = [...issue === undefined ? [] : [issue], ...path === undefined ? [] : issuesOf(issues, path)]
  const described = [...hint === undefined ? [] : [`${id}-hint`], ...found.length === 0 ? [] : [`${id}-issue`]]
  return (
    <div class="field">
      <label for={id}>{label}{required && <span class="soft"> ({common.required})</span>}</label>
      {children({
        id,
        "aria-invalid": found.length > 0 ? "true" : "false",
        "aria-required": required ? "true" : "false",
        ...described.length === 0 ? {} : { "aria-describedby": described.join(" ") }
      })}
      {found.length > 0 && <p class="issue" id={`${id}-issue`}>{found.join(". ")}</p>}
      {hint !== undefined && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  )
}

/** What is wrong with a field as a whole, or with a line or a member of it, which is named. */
const issuesOf = (issues: Issues, path: string): ReadonlyArray<string> =>
  Object.entries(issues).flatMap(([at, found]) => {
    if (at === path) return found
    const member = at.startsWith(path) ? at.slice(path.length) : ""
    return /^[.[]/.test(member) ? found.map((issue) => `${member.replace(/^\./, "")}: ${issue}`) : []
  })

type InputProps =
  & Pick<
    PartialInputHTMLAttributes<HTMLInputElement>,
    "autocomplete" | "autofocus" | "disabled" | "inputMode" | "max" | "min" | "placeholder" | "step"
  >
  & { readonly type?: "text" | "search" | "password" | "number" | "datetime-local" | "date" }

/** Without a bound, a browser takes years of six digits, of which nothing else makes a time. */
const latest = { max: "9999-12-31T23:59:59" }

/** A line of text. */
export const TextField = (
  { hint, issue, label, onInput, path, required, value, ...input }: FieldProps & InputProps & {
    readonly value: string
    readonly onInput: (value: string) => void
  }
) => (
  <Field {...{ label, hint, issue, path, required } as FieldProps}>
    {(control) => (
      <input
        class="input"
        autocomplete="off"
        // The types of Preact tell the roles of each type of input apart; here it has none.
        {...{ type: "text", ...input.type === "datetime-local" ? latest : {}, ...input } as { readonly type: "text" }}
        {...control}
        required={required === true}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    )}
  </Field>
)

/** Several lines of text, for example JSON. */
export const AreaField = (
  { hint, holdsForm = false, issue, label, onInput, path, required, rows = 8, value }: FieldProps & {
    readonly value: string
    readonly rows?: number
    /** Whether the form around is not sent while there is an issue. Default false. */
    readonly holdsForm?: boolean
    readonly onInput: (value: string) => void
  }
) => (
  <Field {...{ label, hint, issue, path, required } as FieldProps}>
    {(control) => (
      <textarea
        {...control}
        ref={(area) => area?.setCustomValidity(holdsForm ? issue ?? "" : "")}
        rows={rows}
        spellcheck={false}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    )}
  </Field>
)

/** One of several values. */
export const SelectField = <Value extends string>(
  { disabled = false, hint, issue, label, onChange, options, path, required, value }: FieldProps & {
    readonly value: Value
    readonly options: ReadonlyArray<readonly [value: Value, title: string]>
    readonly onChange: (value: Value) => void
    readonly disabled?: boolean
  }
) => (
  <Field {...{ label, hint, issue, path, required } as FieldProps}>
    {(control) => (
      <select
        {...control}
        disabled={disabled}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value as Value)}
      >
        {options.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
      </select>
    )}
  </Field>
)

/** On or off. */
export const CheckField = (
  { checked, disabled = false, label, onChange }: {
    readonly label: ComponentChildren
    readonly checked: boolean
    readonly disabled?: boolean
    readonly onChange: (checked: boolean) => void
  }
) => (
  <label class="check">
    <input
      type="checkbox"
      checked={checked}
      disabled={disabled}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
    <span>{label}</span>
  </label>
)
