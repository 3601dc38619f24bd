/**
 * The events that a device has reported: those of its thing model, and those that
 * the cloud makes of what it says besides.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { useLive } from "../../api/live.ts"
import { useQuery } from "../../api/useQuery.ts"
import { SelectField } from "../../parts/Form.tsx"
import type { ThingModel } from "../../parts/model/Model.ts"
import { ModelValue } from "../../parts/model/ModelValue.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, Json, type Mood, Time } from "../../parts/Small.tsx"
import { SteadyButton } from "../../parts/SteadyButton.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts as currentTexts, useTexts } from "../../text/text.ts"
import type { TabProps } from "./DeviceTab.ts"

type DeviceEvent = Data<typeof api.history.listDeviceEvents>["results"][number]

/** The events that the cloud makes (docs/protocol/reports.md). */
const madeByCloud = ["user", "raw", "raw_reply", "modbus", "log", "diag"]

const pageSize = 50
/** As many stand on the page, with what comes in while one looks: the API lists as many at once. Older ones begin anew. */
const maxShown = 1000

export const EventsTab = ({ device, model }: TabProps) => {
  const { common, device: { events } } = useTexts()
  const url = useUrl()
  const eventId = url.get("event")
  return (
    <div class="stack">
      <div class="filters">
        <SelectField
          label={events.event}
          value={eventId}
          options={[
            ["", common.all] as const,
            ...model.events.map(({ id, name }) => [id, name] as const),
            ...madeByCloud.map((id) => [id, events.made[id] ?? id] as const)
          ]}
          onChange={(event) => url.set({ event })}
        />
      </div>
      <EventList key={eventId} deviceId={device.device_id} eventId={eventId} model={model} />
    </div>
  )
}

/** The newest first; older ones are read on demand. `eventId` is empty for all. */
export const EventList = (
  { deviceId, eventId, model }: {
    readonly deviceId: string
    readonly eventId: string
    readonly model: ThingModel
  }
) => {
  const { device: { events } } = useTexts()
  const [limit, setLimit] = useState(pageSize)
  /** Unix milliseconds: older events are shown, from this time back. */
  const [end, setEnd] = useState<number>()
  const query = useQuery(async (signal) => {
    const { results } = await api.history.listDeviceEvents({
      params: { device_id: deviceId },
      query: { limit, ...end === undefined ? {} : { end }, ...eventId === "" ? {} : { event_id: eventId } },
      signal
    })
    return results
  }, [deviceId, eventId, limit, end])
  useLive({ device_id: deviceId }, (event) => {
    if (end !== undefined || event.type !== "event" || (eventId !== "" && event["event_id"] !== eventId)) return
    const came = {
      event_id: String(event["event_id"]),
      time: Number(event["event_time"]),
      value: event["value"] as DeviceEvent["value"]
    }
    query.change((shown) =>
      shown.some((one) => keyOf(one) === keyOf(came)) ? shown : [came, ...shown].slice(0, maxShown)
    )
  })
  const showFrom = (time: number | undefined) => {
    setEnd(time)
    setLimit(pageSize)
  }
  return (
    <Shown query={query}>
      {(rows) => {
        const hasOlder = rows.length >= limit
        return rows.length === 0 ? <Empty title={events.empty}>{events.emptyHint}</Empty> : (
          <div class="stack">
            <Table caption={events.caption} columns={columnsOf(model)} rows={rows} keyOf={keyOf} />
            {(rows.length >= pageSize || end !== undefined) && (
              <div class="row">
                <SteadyButton
                  small={false}
                  isOff={!hasOlder}
                  onClick={() =>
                    rows.length >= maxShown
                      ? showFrom(rows.at(-1)!.time)
                      : setLimit(Math.min(rows.length + pageSize, maxShown))}
                >
                  {events.older}
                </SteadyButton>
                <SteadyButton small={false} isOff={end === undefined} onClick={() => showFrom(undefined)}>
                  {events.newest}
                </SteadyButton>
              </div>
            )}
          </div>
        )
      }}
    </Shown>
  )
}

const keyOf = ({ event_id, time, value }: DeviceEvent): string => `${time} ${event_id} ${JSON.stringify(value)}`

const moods: Readonly<Record<string, Mood>> = { info: "plain", alert: "warn", error: "bad" }

const columnsOf = (model: ThingModel): ReadonlyArray<Column<DeviceEvent>> => {
  const { common, device: { events } } = currentTexts()
  return [
    { id: "time", title: common.time, kind: "tight", cell: ({ time }) => <Time at={time} /> },
    {
      id: "event",
      title: events.event,
      kind: "tight",
      cell: ({ event_id }) => {
        const element = model.events.find(({ id }) => id === event_id)
        return (
          <Badge mood={moods[element?.eventType ?? "info"] ?? "plain"}>
            {element?.name ?? events.made[event_id] ?? event_id}
          </Badge>
        )
      }
    },
    {
      id: "value",
      title: events.content,
      cell: ({ event_id, value }) => {
        const element = model.events.find(({ id }) => id === event_id)
        if (event_id === "log" && Array.isArray(value)) return <LogEntries entries={value} />
        return element === undefined
          ? <Json value={value} />
          : <ModelValue type={{ type: "struct", specs: element.outputData }} value={value} />
      }
    }
  ]
}

const levels: Readonly<Record<string, Mood>> = { FATAL: "bad", ERROR: "bad", WARN: "warn", INFO: "busy" }

/** What a device has written into its log; the cloud does not check the members. */
const LogEntries = ({ entries }: { readonly entries: ReadonlyArray<unknown> }) => (
  <ul class="stack tight">
    {entries.map((entry, index) => {
      const { code, logContent, logLevel, module, utcTime, ...others } = (entry ?? {}) as Readonly<Record<string, unknown>>
      return (
        <li key={index}>
          <span class="row">
            {logLevel !== undefined && <Badge mood={levels[String(logLevel)] ?? "plain"}>{String(logLevel)}</Badge>}
            {logContent !== undefined && <span class="wrap">{String(logContent)}</span>}
            <span class="soft small">{[module, code, utcTime].filter((part) => part !== undefined).join(" · ")}</span>
          </span>
          {Object.keys(others).length > 0 && <Json value={others} />}
        </li>
      )
    })}
  </ul>
)
