/**
 * What changes between two models, and what that breaks for whom.
 */
import { Badge } from "../../../parts/Small.tsx"
import { useTexts } from "../../../text/text.ts"
import type { Difference } from "./check.ts"

export const Comparison = ({ difference }: { readonly difference: Difference }) => {
  const { products: { model: words } } = useTexts()
  const { added, breaks, changed, removed } = difference
  const lines = [
    ...added.map((id) => [words.added(id), "good"] as const),
    ...changed.map((id) => [words.changed(id), "busy"] as const),
    ...removed.map((id) => [words.removed(id), "bad"] as const)
  ]
  return (
    <div class="stack">
      {lines.length === 0
        ? <p class="soft">{words.unchanged}</p>
        : <div class="row">{lines.map(([text, mood]) => <Badge key={text} mood={mood}>{text}</Badge>)}</div>}
      {breaks.length === 0 ? <p class="good">{words.compatible}</p> : <Breaks breaks={breaks} />}
    </div>
  )
}

export const Breaks = ({ breaks }: { readonly breaks: Difference["breaks"] }) => {
  const { products: { model: words } } = useTexts()
  return (
    <div class="stack tight">
      <h3>{words.breaks}</h3>
      <ul class="stack tight">
        {breaks.map(({ id, message, whom }) => (
          <li key={`${whom} ${id} ${message}`}>
            <Badge mood="warn">{words.audiences[whom]}</Badge> <code>{id}</code> {message}
          </li>
        ))}
      </ul>
    </div>
  )
}
