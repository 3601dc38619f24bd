/**
 * Short messages that something was done, or was not. They are read out.
 */
import { signal } from "@preact/signals"
import { noticeEnd } from "../api/session.ts"
import { asApiError } from "../api/useQuery.ts"
import { unturned } from "../text/text.ts"

const shown = signal<ReadonlyArray<{ readonly id: number; readonly text: string; readonly isBad: boolean }>>([])
let last = 0

const show = (text: string, isBad: boolean, seconds: number) => {
  const id = ++last
  shown.value = [...shown.value.slice(-2), { id, text, isBad }]
  setTimeout(() => {
    shown.value = shown.value.filter((toast) => toast.id !== id)
  }, seconds * 1000)
}

/** Says that something was done. */
export const tell = (text: string): void => show(text, false, 4)

/** Says why something was not done. */
export const tellFailure = (error: unknown): void => {
  noticeEnd(error)
  show(asApiError(error).message, true, 10)
}

/** Where the messages appear: in the page, and in each dialog, which hides the page around it from sight and from readers. */
export const Toasts = () => (
  <div class="toasts" role="status">
    {shown.value.map(({ id, isBad, text }) => <div key={id} class={isBad ? "toast bad" : "toast"}>{unturned(text)}</div>)}
  </div>
)
