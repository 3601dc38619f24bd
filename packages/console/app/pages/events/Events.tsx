/**
 * The events of the project as they happen: filtered, paused, resumed.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { type LiveEvent, liveEventTypes, useLiveMoments } from "../../api/live.ts"
import { deviceHref, ProductFilter, productOf, useProducts } from "../../parts/Devices.tsx"
import { SelectField, TextField } from "../../parts/Form.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Badge, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import * as EventBuffer from "./EventBuffer.ts"
import "./events.css"

const Events = () => {
  const { common, events, shell } = useTexts()
  const url = useUrl()
  const products = useProducts()
  const [isPaused, setPaused] = useState(false)
  const [buffer, setBuffer] = useState(EventBuffer.empty)
  const { count, rate } = useRate()
  const type = liveEventTypes.find((type) => type === url.get("type")) ?? ""
  const productKey = productOf(url)
  const deviceId = url.get("device")

  useEffect(() => setBuffer(EventBuffer.empty), [type, productKey, deviceId])
  useLiveMoments({
    product_key: productKey || undefined,
    device_id: deviceId || undefined,
    types: type === "" ? liveEventTypes : [type],
    whileHidden: true
  }, (arrived) => {
    count(arrived.length)
    setBuffer((buffer) => EventBuffer.add(buffer, arrived, isPaused))
  })
  const resume = () => {
    setPaused(false)
    setBuffer(EventBuffer.resume)
  }

  return (
    <Page
      title={shell.pages.events}
      lead={events.lead}
      actions={
        <>
          <span class="soft small">{events.rate(formatNumber(rate))}</span>
          <button type="button" class="button" onClick={() => setBuffer(EventBuffer.empty)}>{events.clear}</button>
          <button type="button" class="button" onClick={isPaused ? resume : () => setPaused(true)}>
            {isPaused ? events.resume : events.pause}
          </button>
        </>
      }
    >
      <div class="stack">
        <div class="filters">
          <SelectField
            label={events.type}
            value={type}
            options={[["", common.all], ...liveEventTypes.map((type) => [type, events.types[type]] as const)]}
            onChange={(type) => url.set({ type })}
          />
          <ProductFilter products={products} url={url} />
          <TextField
            label={common.deviceId}
            value={deviceId}
            onInput={(device) => url.set({ device: device.trim() }, true)}
          />
        </div>
        {isPaused && (
          <p class="notice" role="status">
            {events.waiting(formatNumber(buffer.waiting.length))}{" "}
            {buffer.dropped > 0 && events.dropped(formatNumber(buffer.dropped))}
          </p>
        )}
        {buffer.shown.length === 0
          ? <Empty title={events.emptyTitle}>{events.emptyBody}</Empty>
          : <Table caption={events.caption} columns={columnsOf()} rows={buffer.shown} keyOf={({ id }) => id} />}
      </div>
    </Page>
  )
}

const columnsOf = (): ReadonlyArray<Column<LiveEvent>> => {
  const { common, events } = texts()
  return [
    { id: "time", title: common.time, kind: "tight", cell: ({ time }) => <Time at={time} /> },
    { id: "type", title: events.type, kind: "tight", cell: ({ type }) => <Badge>{events.types[type]}</Badge> },
    { id: "subject", title: events.subject, kind: "tight", cell: (event) => <Subject event={event} /> },
    { id: "content", title: events.content, cell: (event) => <Content event={event} /> }
  ]
}

const Subject = ({ event: { device_id, device_name, scene_id, scene_name } }: { readonly event: LiveEvent }) => {
  if (device_id !== undefined) return <a href={deviceHref(device_id)}>{device_name ?? device_id}</a>
  if (scene_id === undefined) return null
  return <a href={`/console/scenes/${String(scene_id)}`}>{String(scene_name ?? scene_id)}</a>
}

const shownElsewhere: ReadonlySet<string> = new Set(["id", "type", "time", "device_id", "device_name", "product_key"])

/** What an event says beyond what the other columns show: names and values, those of properties without their times. */
const Content = ({ event }: { readonly event: LiveEvent }) => {
  const { properties, ...others } = event as LiveEvent & { readonly properties?: Readonly<Record<string, unknown>> }
  const reported = Object.entries(properties ?? {}).map(([id, report]) =>
    [id, (report as { readonly value?: unknown } | null)?.value ?? report] as const
  )
  const said = Object.entries(others).filter(([field, value]) => !shownElsewhere.has(field) && value !== "")
  return (
    <ul class="event-content">
      {[...reported, ...said].map(([name, value]) => (
        <li key={name}>
          <span class="soft">{name}</span>{" "}
          <code class="wrap">{typeof value === "string" ? value : JSON.stringify(value)}</code>
        </li>
      ))}
    </ul>
  )
}

/** How many came in the second before, on average of some. */
const useRate = () => {
  const counted = useRef(0)
  const [rate, setRate] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => {
      setRate((before) => Math.round(before * 0.5 + counted.current * 0.5))
      counted.current = 0
    }, 1000)
    return () => clearInterval(timer)
  }, [])
  return {
    rate,
    count: (events: number) => {
      counted.current += events
    }
  }
}

export default Events
