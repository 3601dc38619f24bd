/**
 * Dialogs, and the question before what cannot be undone.
 */
import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useLocation } from "preact-iso"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import { session } from "../api/session.ts"
import { useQuery } from "../api/useQuery.ts"
import { unturned, useTexts } from "../text/text.ts"
import { Form, TextField } from "./Form.tsx"
import { Shown } from "./Shown.tsx"
import { Toasts } from "./toasts.tsx"

/** Keeps the focus inside, and closes with Escape. It is open while it is drawn. */
export const Dialog = (
  { children, onClose, title, wide = false }: {
    readonly title: string
    readonly onClose: () => void
    readonly wide?: boolean
    readonly children: ComponentChildren
  }
) => {
  const { common } = useTexts()
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const element = dialog.current!
    const before = [...aroundFocus()]
    element.showModal()
    element.querySelector<HTMLElement>("form :is(input, select, textarea)")?.focus()
    return () => {
      element.close()
      // The dialog is out of the page by now, so that the browser does not do this.
      before.find(({ isConnected }) => isConnected)?.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class="stack">
        <div class="row apart">
          <h2 id={id}>{unturned(title)}</h2>
          <button type="button" class="button plain small" onClick={onClose}>{common.close}</button>
        </div>
        {children}
      </div>
      <Toasts />
    </dialog>
  )
}

/** What has the focus, and what around it can have it once that is gone. */
function* aroundFocus(): Iterable<HTMLElement> {
  for (let element = document.activeElement; element instanceof HTMLElement; element = element.parentElement) {
    if (element === document.activeElement || element.hasAttribute("tabindex")) yield element
  }
}

/** What is asked before something is done. */
export interface Question {
  readonly title: string
  readonly body: ComponentChildren
  /** What the button says, for example “Delete 3 devices”. */
  readonly action: string
  readonly danger?: boolean
  /** What has to be typed first, for what takes much with it. */
  readonly typed?: string
  /** Is done on yes; if it fails, the dialog stays and says why. */
  readonly run: () => Promise<unknown>
}

/** A sentence of a question with numbers, which are read when it is asked. */
export const Counted = <A,>(
  { children, read }: {
    readonly read: (signal: AbortSignal) => Promise<A>
    readonly children: (counted: A) => ComponentChildren
  }
) => <Shown query={useQuery(read, [])}>{(counted) => <p>{children(counted)}</p>}</Shown>

const question = signal<Question | undefined>(undefined)

/** Asks, and does it on yes. */
export const ask = (asked: Question): void => {
  question.value = asked
}

/** Where questions appear: once in the page. */
export const Questions = () => {
  const asked = question.value
  const { path } = useLocation()
  // What was asked of the one before, nobody answers with another key, nor what a page has asked on another one.
  useEffect(() => () => {
    question.value = undefined
  }, [session.value?.key_id, path])
  const close = () => {
    // Somebody may have asked the next one while this one was carried out.
    if (question.value === asked) question.value = undefined
  }
  return asked === undefined ? null : <Ask key={asked.title} asked={asked} onClose={close} />
}

const Ask = ({ asked, onClose }: { readonly asked: Question; readonly onClose: () => void }) => {
  const { common } = useTexts()
  const [typed, setTyped] = useState("")
  const { action, body, danger = false, run, title, typed: expected } = asked
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        submit={action}
        danger={danger}
        disabled={expected !== undefined && asShown(typed) !== asShown(expected)}
        onCancel={onClose}
        onSubmit={async () => {
          await run()
          onClose()
        }}
      >
        <div class="wrap">{body}</div>
        {expected !== undefined && <TextField label={unturned(common.confirmName(expected))} value={typed} onInput={setTyped} />}
      </Form>
    </Dialog>
  )
}

/** A text as one sees it: of white space a page shows one space, and none at the ends; of characters without a form, nothing. */
const asShown = (text: string): string => text.replace(/\p{Cf}/gu, "").trim().replace(/\s+/g, " ")
