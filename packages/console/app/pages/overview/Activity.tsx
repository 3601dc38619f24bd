/**
 * How the project was: devices online, messages, commands, scenes and failures over time.
 */
import { useMemo } from "preact/hooks"
import { api } from "../../api/client.ts"
import { now } from "../../api/clock.ts"
import type { Data } from "../../api/Operations.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Card } from "../../parts/Page.tsx"
import { type Line, Plot } from "../../parts/Plot.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, useTexts } from "../../text/text.ts"
import { rhythm } from "./rhythm.ts"
import "./overview.css"

type ActivityData = Data<typeof api.overview.getActivity>
type Point = ActivityData["points"][number]

const hour = 3_600_000
const spans = { hour, day: 24 * hour, week: 7 * 24 * hour, month: 30 * 24 * hour } as const
type Span = keyof typeof spans

export const Activity = () => {
  const { overview } = useTexts()
  const url = useUrl()
  const span: Span = Object.hasOwn(spans, url.get("span")) ? url.get("span") as Span : "hour"
  const query = usePolledQuery((signal) => {
    const to = now()
    return api.overview.getActivity({ query: { from: to - spans[span], to }, signal })
  }, [span], rhythm)
  return (
    <section class="stack" aria-label={overview.activity}>
      <div class="row apart">
        <h2>{overview.activity}</h2>
        <div class="row" role="group" aria-label={overview.span}>
          {(Object.keys(spans) as ReadonlyArray<Span>).map((id) => (
            <button
              key={id}
              type="button"
              class={id === span ? "button small primary" : "button small"}
              aria-pressed={id === span}
              onClick={() => url.set({ span: id === "hour" ? "" : id })}
            >
              {overview.spans[id]}
            </button>
          ))}
        </div>
      </div>
      <Shown query={query}>{(data) => <Plots data={data} />}</Shown>
    </section>
  )
}

const sum = (byCode: Readonly<Record<string, number>>): number =>
  Object.values(byCode).reduce((total, count) => total + count, 0)

const Plots = ({ data }: { readonly data: ActivityData }) => {
  const texts = useTexts()
  const { overview } = texts
  const drawn = useMemo(() => {
    const { interval, points } = data
    const line = (title: string, valueOf: (point: Point) => number): Line => ({ title, values: points.map(valueOf) })
    const rate = (title: string, countOf: (point: Point) => number): Line => ({
      ...line(title, (point) => Math.round(1000 * countOf(point) / interval) / 1000),
      unit: overview.perSecond
    })
    return {
      times: points.map(({ time }) => time),
      devices: [line(overview.online, ({ devices_online }) => devices_online)],
      messages: [
        rate(overview.accepted, ({ messages }) => messages.accepted),
        rate(overview.refused, ({ messages }) => sum(messages.refused))
      ],
      commands: [
        rate(overview.replied, ({ commands }) => commands.replied),
        rate(overview.failed, ({ commands }) => sum(commands.failed)),
        rate(overview.expired, ({ commands }) => commands.expired)
      ],
      scenes: [
        line(overview.succeeded, ({ executions }) => executions.succeeded),
        line(overview.failed, ({ executions }) => executions.failed)
      ]
    }
  }, [data, overview])
  const span = [data.from, data.to] as const
  return (
    <>
      <div class="overview-plots">
        {(["devices", "messages", "commands", "scenes"] as const).map((id) => (
          <Card key={id} title={overview.plots[id]}>
            <Plot label={overview.plots[id]} times={drawn.times} lines={drawn[id]} span={span} height={200} />
          </Card>
        ))}
      </div>
      <Failures points={data.points} />
    </>
  )
}

interface FailureRow {
  readonly what: "message" | "command"
  readonly code: string
  readonly count: number
}

const Failures = ({ points }: { readonly points: ReadonlyArray<Point> }) => {
  const { overview } = useTexts()
  const rows = useMemo(() => [
    ...countCodes("message", points.map(({ messages }) => messages.refused)),
    ...countCodes("command", points.map(({ commands }) => commands.failed))
  ].sort((a, b) => b.count - a.count), [points])
  return (
    <Card title={overview.failures}>
      {rows.length === 0
        ? <p class="soft">{overview.noFailures}</p>
        : (
          <Table
            caption={overview.failures}
            rows={rows}
            keyOf={({ code, what }) => `${what} ${code}`}
            columns={[
              { id: "what", title: overview.what, cell: ({ what }) => overview.whats[what] },
              {
                id: "code",
                title: overview.code,
                cell: ({ code }) => (
                  <span class="row">
                    <code>{code}</code>
                    <span class="soft">{overview.codes[code]}</span>
                  </span>
                )
              },
              { id: "count", title: overview.count, kind: "number", cell: ({ count }) => formatNumber(count) }
            ]}
          />
        )}
    </Card>
  )
}

const countCodes = (
  what: FailureRow["what"],
  intervals: ReadonlyArray<Readonly<Record<string, number>>>
): ReadonlyArray<FailureRow> => {
  const counts = new Map<string, number>()
  for (const byCode of intervals) {
    for (const [code, count] of Object.entries(byCode)) counts.set(code, (counts.get(code) ?? 0) + count)
  }
  return [...counts].map(([code, count]) => ({ what, code, count }))
}
