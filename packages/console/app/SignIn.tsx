/**
 * Signing in with an access key.
 */
import { useState } from "preact/hooks"
import { signIn } from "./api/session.ts"
import { Form, TextField } from "./parts/Form.tsx"
import { useTexts } from "./text/text.ts"

/** `hasEnded`: somebody was signed in, and stays where they were. */
export const SignIn = ({ hasEnded }: { readonly hasEnded: boolean }) => {
  const { common, shell: { signIn: words } } = useTexts()
  const [key, setKey] = useState("")
  return (
    <main class="sign-in">
      <div class="card">
        <div class="brand">
          <img src="/console/icon.svg" alt="" />
          {common.product}
        </div>
        <h1>{words.title}</h1>
        {hasEnded && <p class="notice">{words.ended}</p>}
        <Form submit={words.submit} onSubmit={() => signIn(key.trim())}>
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
        <p class="soft small">{words.note}</p>
      </div>
    </main>
  )
}
