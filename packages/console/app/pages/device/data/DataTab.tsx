/**
 * What a device has reported over time: plots, and every value.
 */
import { downloadAddress } from "../../../api/client.ts"
import { now } from "../../../api/clock.ts"
import { CheckField, SelectField } from "../../../parts/Form.tsx"
import { isNumber, labelsOf, type PropertyElement } from "../../../parts/model/Model.ts"
import { Card, Empty } from "../../../parts/Page.tsx"
import { Time } from "../../../parts/Small.tsx"
import { useUrl } from "../../../parts/useUrl.ts"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { HistoryPlot } from "./HistoryPlot.tsx"
import { type Range, ranges, type Span, useSpan } from "./useSpan.ts"
import { ValueList } from "./ValueList.tsx"

/** A plot has as many colours. */
const maxLines = 6

export const DataTab = ({ device, model }: TabProps) => {
  const { device: { data } } = useTexts()
  const url = useUrl()
  const span = useSpan()
  const plottable = model.properties.filter(({ dataType }) => isNumber(dataType) || labelsOf(dataType) !== undefined)
  const named = url.get("p").split(",").filter((id) => id !== "")
  const wanted = named.length > 0 ? named : plottable.slice(0, 2).map(({ id }) => id)
  const chosen = wanted.flatMap((id) => plottable.filter((property) => property.id === id)).slice(0, maxLines)
  const listed = model.properties.find(({ id }) => id === url.get("list")) ??
    model.properties.find(({ id }) => id === wanted[0]) ?? model.properties[0]
  const areMarked = url.get("marks") !== "off"
  if (model.properties.length === 0) return <Empty title={data.noModel}>{data.noModelHint}</Empty>
  return (
    <div class="stack">
      <Card>
        <SpanBar span={span} />
        <Chosen
          chosen={chosen}
          plottable={plottable}
          onChange={(ids) => url.set({ p: ids.join(",") })}
        />
        {chosen.length === 0
          ? <Empty title={data.nothingChosen}>{data.nothingChosenHint}</Empty>
          : <HistoryPlot deviceId={device.device_id} properties={chosen} model={model} span={span} areMarked={areMarked} />}
        <div class="row apart">
          <CheckField
            label={data.markEvents}
            checked={areMarked}
            onChange={(isOn) => url.set({ marks: isOn ? "" : "off" }, true)}
          />
          <Export deviceId={device.device_id} span={span} ids={chosen.map(({ id }) => id)} />
        </div>
      </Card>
      {listed !== undefined && (
        <Card title={data.list}>
          <SelectField
            label={data.property}
            value={listed.id}
            options={model.properties.map(({ id, name }) => [id, name] as const)}
            onChange={(id) => url.set({ list: id }, true)}
          />
          <ValueList key={`${listed.id} ${span.range ?? span.from}`} deviceId={device.device_id} property={listed} span={span} />
        </Card>
      )}
    </div>
  )
}

const SpanBar = ({ span }: { readonly span: Span }) => {
  const { device: { data } } = useTexts()
  return (
    <div class="row apart">
      <div class="row" role="group" aria-label={data.span}>
        {(Object.keys(ranges) as ReadonlyArray<Range>).map((range) => (
          <button
            key={range}
            type="button"
            class={span.range === range ? "button small primary" : "button small"}
            aria-pressed={span.range === range}
            onClick={() => span.setRange(range)}
          >
            {data.ranges[range]}
          </button>
        ))}
        <button
          type="button"
          class="button small"
          onClick={() => span.setOwn(span.from - (span.to - span.from) / 2, Math.min(span.to + (span.to - span.from) / 2, now()))}
        >
          {data.zoomOut}
        </button>
      </div>
      <span class="soft small">
        {span.range === undefined ? <><Time at={span.from} /> – <Time at={span.to} /></> : data.dragHint}
      </span>
    </div>
  )
}

/** The lines of the plot; `plottable` has those that can be added. */
const Chosen = (
  { chosen, onChange, plottable }: {
    readonly chosen: ReadonlyArray<PropertyElement>
    readonly plottable: ReadonlyArray<PropertyElement>
    readonly onChange: (ids: ReadonlyArray<string>) => void
  }
) => {
  const { device: { data } } = useTexts()
  const ids = chosen.map(({ id }) => id)
  const others = plottable.filter(({ id }) => !ids.includes(id))
  return (
    <div class="row">
      {chosen.map(({ id, name }) => (
        <button
          key={id}
          type="button"
          class="button small chip"
          aria-label={data.removeLine(name)}
          aria-disabled={chosen.length === 1}
          onClick={({ currentTarget: { nextElementSibling, previousElementSibling } }) => {
            if (chosen.length === 1) return
            const next = nextElementSibling ?? previousElementSibling
            if (next instanceof HTMLElement) next.focus()
            onChange(ids.filter((other) => other !== id))
          }}
        >
          {name} <span aria-hidden="true">×</span>
        </button>
      ))}
      {others.length > 0 && chosen.length < maxLines && (
        <select
          class="add-line"
          aria-label={data.addLine}
          value=""
          onChange={(event) => onChange([...ids, event.currentTarget.value])}
        >
          <option value="">{data.addLine}</option>
          {others.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
        </select>
      )}
    </div>
  )
}

const Export = (
  { deviceId, ids, span }: { readonly deviceId: string; readonly span: Span; readonly ids: ReadonlyArray<string> }
) => {
  const { device: { data } } = useTexts()
  const address = (format: "csv" | "ndjson") =>
    downloadAddress(["history", "exportDeviceHistory"], {
      params: { device_id: deviceId },
      query: { start: Math.round(span.from), end: Math.round(span.to), property: ids, format }
    })
  return (
    <div class="row">
      <a class="button small" href={address("csv")} download={`${deviceId}.csv`}>{data.exportCsv}</a>
      <a class="button small" href={address("ndjson")} download={`${deviceId}.ndjson`}>{data.exportNdjson}</a>
    </div>
  )
}
