/**
 * Properties over time on one axis, with the events of the device. It goes on while
 * one looks.
 */
import { useMemo, useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { now } from "../../../api/clock.ts"
import { useLiveMoments } from "../../../api/live.ts"
import { usePolledQuery } from "../../../api/useQuery.ts"
import { isNumber, type PropertyElement, type ThingModel } from "../../../parts/model/Model.ts"
import { textOf } from "../../../parts/model/ModelValue.tsx"
import { Plot } from "../../../parts/Plot.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { type Column, Table } from "../../../parts/Table.tsx"
import { formatNumber, useTexts } from "../../../text/text.ts"
import { reportOf } from "../useShadow.ts"
import { type Arrival, intervalOf, type Point, plotOf, type Series, summaryOf } from "./series.ts"
import type { Span } from "./useSpan.ts"

/** What is read at once; between two reads the stream tells what comes in. */
interface Read {
  readonly at: number
  readonly interval: number
  readonly series: ReadonlyArray<Series>
  readonly events: ReadonlyArray<{ readonly event_id: string; readonly time: number }>
}

const maxMarks = 100
/** Of values that come in between two reads the latest are drawn. */
const maxArrivals = 5000

export const HistoryPlot = (
  { areMarked, deviceId, model, properties, span }: {
    readonly deviceId: string
    readonly properties: ReadonlyArray<PropertyElement>
    readonly model: ThingModel
    readonly span: Span
    readonly areMarked: boolean
  }
) => {
  const { device: { data: texts } } = useTexts()
  const isLive = span.range !== undefined
  const [arrivals, setArrivals] = useState<ReadonlyArray<Arrival>>([])
  const [happened, setHappened] = useState<Read["events"]>([])
  const ids = properties.map(({ id }) => id).join(",")
  const query = usePolledQuery<Read>(
    async (signal) => {
      const read = await readSpan(deviceId, properties, span, areMarked, signal)
      setArrivals((arrivals) => arrivals.filter(({ time }) => time > read.at - read.interval * 1000))
      setHappened((happened) => happened.filter(({ time }) => time > read.at))
      return read
    },
    [deviceId, ids, areMarked, isLive ? span.range : `${span.from} ${span.to}`],
    60
  )
  useLiveMoments({ device_id: deviceId }, (events) => {
    if (!isLive) return
    const came = events.filter(({ type }) => type === "property").flatMap((event) =>
      reportOf(event).flatMap(([id, { time, value }]) => typeof value === "number" ? [{ id, time, value }] : [])
    )
    if (came.length > 0) setArrivals((arrivals) => [...arrivals, ...came].slice(-maxArrivals))
    const marks = events.filter(({ type }) => type === "event")
      .map((event) => ({ event_id: String(event["event_id"]), time: Number(event["event_time"]) }))
    if (marks.length > 0) setHappened((happened) => [...happened, ...marks].slice(-maxMarks))
  })
  const drawn = useMemo(() => {
    const { interval, series } = query.data ?? { interval: 1, series: [] }
    const { times, values } = plotOf(series, arrivals, interval)
    const lines = series.flatMap(({ id, isStepped }, index) => {
      const property = properties.find((property) => property.id === id)
      if (property === undefined) return []
      return [{ title: property.name, unit: property.dataType.unit, isStepped, values: values[index]! }]
    })
    return { times, lines }
  }, [query.data, arrivals, ids])
  const marks = useMemo(
    () =>
      !areMarked ? [] : [...query.data?.events ?? [], ...happened].map(({ event_id, time }) => ({
        at: time,
        title: model.events.find(({ id }) => id === event_id)?.name ?? event_id
      })),
    [query.data, happened, areMarked, model]
  )
  return (
    <Shown query={query}>
      {({ series }) => (
        <div class="stack">
          {drawn.times.length === 0
            ? <p class="soft">{texts.nothing}</p>
            : (
              <Plot
                label={texts.plotOf(properties.map(({ name }) => name).join(", "))}
                {...drawn}
                marks={marks}
                height={320}
                span={[span.from, span.to]}
                onSpan={span.setOwn}
              />
            )}
          <Summary series={series} properties={properties} />
        </div>
      )}
    </Shown>
  )
}

const readSpan = async (
  deviceId: string,
  properties: ReadonlyArray<PropertyElement>,
  { from, range, to }: Span,
  areMarked: boolean,
  signal: AbortSignal
): Promise<Read> => {
  const at = range === undefined ? to : now()
  const start = Math.max(0, Math.floor(at - (to - from)))
  const interval = intervalOf(start, at)
  const points = async (isStepped: boolean): Promise<ReadonlyArray<Series>> => {
    const wanted = properties.filter(({ dataType }) => isNumber(dataType) !== isStepped)
    if (wanted.length === 0) return []
    const { series } = await api.history.queryHistory({
      payload: {
        devices: [{ device_id: deviceId }],
        properties: wanted.map(({ id }) => id),
        start,
        end: Math.ceil(at),
        aggregate: ["avg", "min", "max", "last", "count"],
        interval,
        fill: isStepped ? "previous" : "none",
        order: "asc"
      },
      signal
    })
    return series.map(({ property_id, results }) => ({
      id: property_id,
      isStepped,
      points: results as ReadonlyArray<Point>
    }))
  }
  const events = async () => {
    if (!areMarked) return []
    const { results } = await api.history.listDeviceEvents({
      params: { device_id: deviceId },
      query: { start, end: Math.ceil(at), limit: maxMarks },
      signal
    })
    return results.filter(({ event_id }) => event_id !== "log")
  }
  const [numbers, states, marked] = await Promise.all([points(false), points(true), events()])
  const all = [...numbers, ...states]
  return { at, interval, series: properties.flatMap(({ id }) => all.filter((one) => one.id === id)), events: marked }
}

interface Row extends ReturnType<typeof summaryOf> {
  readonly property: PropertyElement
}

/** The plot in figures, also for those who do not see it. */
const Summary = (
  { properties, series }: {
    readonly series: ReadonlyArray<Series>
    readonly properties: ReadonlyArray<PropertyElement>
  }
) => {
  const { device: { data: texts } } = useTexts()
  const rows = properties.flatMap((property): ReadonlyArray<Row> => {
    const found = series.find(({ id }) => id === property.id)
    return found === undefined ? [] : [{ property, ...summaryOf(found.points) }]
  })
  const figure = (id: "min" | "avg" | "max" | "last"): Column<Row> => ({
    id,
    title: texts.figures[id],
    kind: "number",
    cell: ({ property: { dataType }, ...row }) => {
      const value = row[id]
      if (value === undefined || (id === "avg" && !isNumber(dataType))) return "–"
      return textOf(dataType, value) ?? formatNumber(value)
    }
  })
  return (
    <Table
      caption={texts.summary}
      columns={[
        { id: "property", title: texts.property, cell: ({ property }) => property.name },
        figure("last"),
        figure("min"),
        figure("avg"),
        figure("max"),
        { id: "count", title: texts.count, kind: "number", cell: ({ count }) => formatNumber(count) }
      ]}
      rows={rows}
      keyOf={({ property }) => property.id}
    />
  )
}
