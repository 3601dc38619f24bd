/**
 * Small parts: states, times, JSON, what can be copied.
 */
import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { now } from "../api/clock.ts"
import { formatNumber, language, texts, useTexts } from "../text/text.ts"
import { tell, tellFailure } from "./toasts.tsx"

/** How a state is meant, by its colour; its name says the same. */
export type Mood = "good" | "warn" | "bad" | "busy" | "plain"

export const Badge = ({ children, mood = "plain" }: { readonly mood?: Mood; readonly children: ComponentChildren }) => (
  <span class={`badge ${mood}`}>{children}</span>
)

/** Moves on every ten seconds, so that ages stay right. */
const clock = signal(Date.now())
setInterval(() => {
  clock.value = Date.now()
}, 10_000)

const units = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3600], ["minute", 60]] as const

/** How long ago, in words, with the exact time in the viewer's zone at hand. `at`: Unix milliseconds, or ISO 8601; the API writes an empty text for never. */
export const Ago = ({ at }: { readonly at: number | string | null | undefined }) => {
  const { common } = useTexts()
  if (!at) return <span class="soft">{common.never}</span>
  const time = new Date(at)
  const seconds = (time.getTime() - now(clock.value)) / 1000
  const unit = units.find(([, length]) => Math.abs(seconds) >= length)
  const words = unit === undefined
    ? common.now
    : new Intl.RelativeTimeFormat(language.value, { numeric: "auto" }).format(Math.round(seconds / unit[1]), unit[0])
  return <time dateTime={time.toISOString()} title={exactTime(time)}>{words}</time>
}

/** The exact time in the viewer's zone, to the second. */
export const Time = ({ at }: { readonly at: number | string | null | undefined }) => {
  const { common } = useTexts()
  if (!at) return <span class="soft">{common.never}</span>
  const time = new Date(at)
  return (
    <time dateTime={time.toISOString()} title={time.toISOString()}>
      {new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "medium" }).format(time)}
    </time>
  )
}

/** With milliseconds and the name of the zone. */
const exactTime = (time: Date): string =>
  new Intl.DateTimeFormat(language.value, {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    timeZoneName: "short"
  }).format(time)

/** Puts text into the clipboard. `of` says which, for those who do not see what it stands beside. */
export const CopyButton = (
  { label, of, text }: { readonly text: string; readonly label?: string; readonly of?: string }
) => {
  const { common } = useTexts()
  return (
    <button
      type="button"
      class="button small"
      aria-label={of === undefined ? undefined : `${common.copy}: ${of}`}
      onClick={({ currentTarget }) => copy(text, currentTarget).then(() => tell(common.copied), tellFailure)}
    >
      {label ?? common.copy}
    </button>
  )
}

/** Text with the button that copies it. */
export const Copied = (copied: { readonly of: string; readonly text: string }) => (
  <span class="row"><code>{copied.text}</code><CopyButton {...copied} /></span>
)

/**
 * Pages over plain HTTP have no clipboard; they can copy what is selected. It stands beside
 * the button: outside of an open dialog nothing can be selected.
 */
const copy = async (text: string, button: HTMLButtonElement): Promise<void> => {
  if (window.isSecureContext) return await navigator.clipboard.writeText(text)
  const area = document.createElement("textarea")
  area.value = text
  button.after(area)
  area.select()
  const isCopied = document.activeElement === area && document.execCommand("copy")
  area.remove()
  button.focus()
  if (!isCopied) throw new Error(texts().common.notCopied)
}

/** Text that works when it is pasted. */
export const Snippet = ({ label, text }: { readonly text: string; readonly label: string }) => (
  <div class="snippet">
    <pre tabIndex={0} aria-label={label}><code>{text}</code></pre>
    <CopyButton text={text} />
  </div>
)

/** A value as JSON, on one line if it is short. */
export const Json = ({ value }: { readonly value: unknown }) => {
  const line = JSON.stringify(value) ?? ""
  return line.length <= 60
    ? <code class="wrap">{line}</code>
    : <pre class="small" tabIndex={0}><code>{JSON.stringify(value, null, 2)}</code></pre>
}

/** Shares of a whole; each is named with its count, but for what is left. */
export const Bar = (
  { label, parts }: {
    readonly label: string
    readonly parts: ReadonlyArray<{ readonly title: string; readonly count: number; readonly mood: Mood | "free" }>
  }
) => {
  const total = parts.reduce((sum, { count }) => sum + count, 0)
  const words = parts.filter(({ count, mood }) => count > 0 && mood !== "free").map(({ count, title }) => `${title} ${formatNumber(count)}`).join(", ")
  return (
    <div class="bar" role="img" aria-label={`${label}: ${words}`} title={words}>
      {total > 0 && parts.map(({ count, mood, title }) =>
        <span key={title} class={mood} style={{ width: `${100 * count / total}%` }} />
      )}
    </div>
  )
}

/** A file that the browser makes from text and stores. */
export const download = (name: string, text: string, type = "application/json"): void => {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}
