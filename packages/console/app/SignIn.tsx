/**
 * Signing in with an access key.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { readAgain } from "./api/live.ts"
import { signIn } from "./api/session.ts"
import { Form, TextField } from "./parts/Form.tsx"
import { Toasts } from "./parts/toasts.tsx"
import { useTexts } from "./text/text.ts"

export const SignIn = () => {
  const { common, shell: { signIn: words } } = useTexts()
  useEffect(() => {
    document.title = `${words.title} · ${common.product}`
  }, [words, common])
  return (
    <div class="card">
      <div class="brand">
        <img src="/console/icon.svg" alt="" />
        {common.product}
      </div>
      <h1>{words.title}</h1>
      <KeyForm />
      <p class="soft small">{words.note}</p>
    </div>
  )
}

/** Stands before a page whose session has ended: what was begun there is there afterwards. */
export const SignInAgain = () => {
  const { shell: { signIn: words } } = useTexts()
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const element = dialog.current!
    const before = document.activeElement
    element.showModal()
    return () => {
      element.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    // A browser closes a dialog at the second Escape whatever the page says.
    <dialog
      ref={dialog}
      aria-label={words.title}
      onCancel={(event) => event.preventDefault()}
      onClose={() => dialog.current?.showModal()}
    >
      <div class="stack">
        <h2>{words.title}</h2>
        <p class="notice">{words.ended}</p>
        <KeyForm />
      </div>
      <Toasts />
    </dialog>
  )
}

const KeyForm = () => {
  const { shell: { signIn: words } } = useTexts()
  const [key, setKey] = useState("")
  return (
    <Form submit={words.submit} onSubmit={() => signIn(key.trim()).then(readAgain)}>
      <TextField
        label={words.key}
        hint={words.keyHint}
        path="access_key"
        type="password"
        autocomplete="current-password"
        autofocus
        required
        value={key}
        onInput={setKey}
      />
    </Form>
  )
}
