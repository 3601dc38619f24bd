/**
 * The devices of a campaign by status over time: a bar for each interval, and the same
 * as a table.
 */
import { useMemo } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Shown } from "../../parts/Shown.tsx"
import { Time } from "../../parts/Small.tsx"
import { Table } from "../../parts/Table.tsx"
import { formatNumber, language, useTexts } from "../../text/text.ts"
import { partsOf, type Summary } from "./states.tsx"

type Progress = Data<typeof api.ota.getTaskProgress>

/** `summary`: how it is now; with each other one the progress is read again. */
export const CampaignProgress = ({ summary, taskId }: { readonly taskId: string; readonly summary: Summary }) => {
  const query = usePolledQuery(
    (signal) => api.ota.getTaskProgress({ params: { task_id: taskId }, signal }),
    [taskId, JSON.stringify(summary)],
    30
  )
  return (
    <Shown query={query}>
      {(progress) => (
        <>
          <Bars progress={progress} />
          <Numbers progress={progress} />
        </>
      )}
    </Shown>
  )
}

const deviceCount = (summary: Summary): number => partsOf(summary).reduce((sum, { count }) => sum + count, 0)

/** Bars have the width of one unit and, with all devices, the height of 100. */
const Bars = ({ progress: { from, interval, points, to } }: { readonly progress: Progress }) => {
  const { firmware: { campaign } } = useTexts()
  const most = Math.max(1, ...points.map(({ summary }) => deviceCount(summary)))
  const drawn = useMemo(() =>
    points.map(({ summary, time }, place) => {
      let below = 0
      const parts = partsOf(summary)
      return (
        <g key={time}>
          <title>{[momentOf(Math.min(time + interval * 1000, to)), ...parts.map(({ count, title }) => `${title} ${formatNumber(count)}`)].join("\n")}</title>
          {parts.map(({ count, mood, title }) => {
            const height = 100 * count / most
            below += height
            return height > 0 &&
              <rect key={title} class={mood} x={place + 0.04} width={0.92} y={100 - below} height={height} />
          })}
        </g>
      )
    }), [points, to, language.value])
  const last = points.at(-1)
  return (
    <figure class="progress">
      <div class="bars">
        <span class="soft small">{formatNumber(most)}</span>
        <svg
          viewBox={`0 0 ${Math.max(points.length, 12)} 100`}
          preserveAspectRatio="none"
          role="img"
          aria-label={campaign.barsLabel(points.length)}
        >
          {drawn}
        </svg>
        <span class="soft small">0</span>
        <div class="row apart soft small">
          <Time at={from} />
          {points.length >= 12 && <Time at={to} />}
        </div>
      </div>
      <figcaption class="row small">
        {last !== undefined && partsOf(last.summary).map(({ mood, title }) => (
          <span key={title} class="key"><i class={mood} />{title}</span>
        ))}
      </figcaption>
    </figure>
  )
}

const Numbers = ({ progress: { interval, points, to } }: { readonly progress: Progress }) => {
  const { firmware: { campaign } } = useTexts()
  const states = Object.entries(campaign.states) as ReadonlyArray<[keyof Summary, string]>
  return (
    <details>
      <summary>{campaign.asTable}</summary>
      <div class="progress-numbers">
        <Table
          caption={campaign.over}
          rows={points}
          keyOf={({ time }) => String(time)}
          columns={[
            { id: "until", title: campaign.until, cell: ({ time }) => <Time at={Math.min(time + interval * 1000, to)} /> },
            ...states.map(([state, title]) => ({
              id: state,
              title,
              kind: "number" as const,
              cell: ({ summary }: Progress["points"][number]) => formatNumber(summary[state])
            }))
          ]}
        />
      </div>
    </details>
  )
}

const momentOf = (at: number): string =>
  new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "medium" }).format(at)
