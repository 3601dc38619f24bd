/**
 * Triggers, conditions and actions with what was found of each.
 */
import { Badge, Json, type Mood } from "../../parts/Small.tsx"
import { useTexts } from "../../text/text.ts"

/** A part as executions and dry runs have it. */
export interface Finding {
  readonly URI: string
  readonly params: unknown
  readonly verdict?: string
  readonly value?: unknown
  readonly reason?: string
  readonly status?: string
  readonly attempts?: number
  readonly detail?: string
}

const moods: Readonly<Record<string, Mood>> = {
  holds: "good",
  succeeded: "good",
  fails: "bad",
  failed: "bad",
  loop: "bad",
  limited: "warn",
  skipped: "warn",
  not_met: "warn",
  paused: "warn",
  pending: "busy",
  running: "busy"
}

export const moodOf = (status: string): Mood => moods[status] ?? "plain"

export const Findings = ({ parts, title }: { readonly title: string; readonly parts: ReadonlyArray<Finding> }) => {
  const { common, scenes } = useTexts()
  const { executions } = scenes
  if (parts.length === 0) return null
  return (
    <section class="stack tight">
      <h3>{title}</h3>
      <ul class="stack tight">
        {parts.map(({ URI, attempts, detail, params, reason, status, value, verdict }, index) => (
          <li key={index} class="element stack tight">
            <span class="row">
              <strong>{scenes.kinds[URI] ?? URI}</strong>
              {verdict !== undefined && (
                <Badge mood={moodOf(verdict)}>{executions.verdicts[verdict] ?? verdict}</Badge>
              )}
              {status !== undefined && (
                <Badge mood={moodOf(status)}>{executions.statuses[status] ?? status}</Badge>
              )}
              {attempts !== undefined && attempts > 0 && (
                <span class="soft small">{executions.attempts(attempts)}</span>
              )}
            </span>
            {reason !== undefined && reason !== "" && <span class="wrap">{reason}</span>}
            {detail !== undefined && detail !== "" && <span class="wrap">{detail}</span>}
            {value !== undefined && (
              <span class="soft">{executions.found}: <code class="wrap">{JSON.stringify(value)}</code></span>
            )}
            <details class="soft small">
              <summary>{common.details}</summary>
              <Json value={params} />
            </details>
          </li>
        ))}
      </ul>
    </section>
  )
}
