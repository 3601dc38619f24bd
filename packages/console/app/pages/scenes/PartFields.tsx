/**
 * The fields of a trigger, a condition or an action, with the model's elements to
 * choose from.
 */
import { api } from "../../api/client.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ProductField, useProducts } from "../../parts/Devices.tsx"
import { listOf, ObjectField, objectOf } from "../../parts/Fields.tsx"
import { AreaField, SelectField, TextField } from "../../parts/Form.tsx"
import { emptyModel, useModel } from "../../parts/model/Model.ts"
import { localTime, useText } from "../../parts/model/ScalarFields.tsx"
import { useTexts } from "../../text/text.ts"
import { CronField } from "./CronField.tsx"
import { DeviceTarget } from "./DeviceTarget.tsx"
import type { Part } from "./draft.ts"

export interface PartProps {
  readonly part: Part
  /** Where the part stands in the body, for example `triggers[0]`. */
  readonly path: string
  readonly onChange: (part: Part) => void
}

export const PartFields = (props: PartProps) => {
  const { part } = props
  switch (part.URI) {
    case "trigger/device/property":
    case "trigger/device/event":
    case "trigger/device/status":
    case "condition/device/property":
    case "condition/device/status":
      return <Watched {...props} />
    case "trigger/cron":
      return <CronPart {...props} />
    case "condition/time/window":
      return <WindowPart {...props} />
    case "condition/time/range":
      return <RangePart {...props} />
    case "action/device/property":
    case "action/device/service":
      return <DeviceTarget {...props} />
    case "action/rule":
      return <SceneTarget {...props} />
    case "action/webhook":
      return <WebhookPart {...props} />
    case "action/delay":
      return <DelayPart {...props} />
    default:
      return <OwnPart {...props} />
  }
}

const textOf = (value: unknown): string => value === undefined || value === null ? "" : String(value)

const comparisons = ["==", "!=", ">", ">=", "<", "<=", "between", "in", "notIn", "like"] as const

/** What the devices of a product report, or how they are. */
const Watched = ({ onChange, part: { URI, params }, path }: PartProps) => {
  const { common, scenes: { fields } } = useTexts()
  const products = useProducts()
  const productKey = textOf(params["product_key"])
  const { data: model = emptyModel } = useModel(productKey)
  const set = (changes: Part["params"]) => onChange({ URI, params: { ...params, ...changes } })
  const isTrigger = URI.startsWith("trigger/")
  const eventId = textOf(params["event_id"])
  const event = model.events.find(({ id }) => id === eventId)
  const listed = URI.endsWith("/event") ? event?.outputData ?? [] : model.properties
  const property = textOf(params["property_id"])
  const text = (name: string, label: string, hint?: string) => (
    <TextField
      label={label}
      path={`${path}.params.${name}`}
      {...hint === undefined ? {} : { hint }}
      value={textOf(params[name])}
      onInput={(value) => set({ [name]: value })}
    />
  )
  return (
    <>
      <ProductField
        label={common.productLabel}
        path={`${path}.params.product_key`}
        emptyTitle={common.chooseProduct}
        products={products}
        value={productKey}
        onChange={(product_key) => set({ product_key })}
      />
      {text("device_name", fields.device_name, fields.anyDevice)}
      {URI.endsWith("/event") && (
        <SelectField
          label={fields.event_id}
          path={`${path}.params.event_id`}
          value={eventId}
          options={withCurrent(eventId, [
            ["*", fields.anyEvent],
            ...model.events.map(({ id, name }) => [id, name] as const)
          ])}
          onChange={(event_id) => set({ event_id, property_id: "" })}
        />
      )}
      {URI.endsWith("/status") ?
        (
          <>
            <SelectField
              label={fields.status}
              path={`${path}.params.status`}
              value={textOf(params["status"]) || "*"}
              options={[
                ...isTrigger ? [["*", fields.anyStatus] as const] : [],
                ["online", common.deviceStatus.online],
                ["offline", common.deviceStatus.offline]
              ]}
              onChange={(status) => set({ status })}
            />
            <TextField
              label={fields.status_duration}
              path={`${path}.params.status_duration`}
              type="number"
              min={0}
              value={textOf(params["status_duration"])}
              onInput={(minutes) => set({ status_duration: minutes === "" ? undefined : Number(minutes) })}
            />
          </>
        ) :
        (
          <>
            <SelectField
              label={URI.endsWith("/event") ? fields.output : fields.property_id}
              path={`${path}.params.property_id`}
              value={property}
              options={withCurrent(property, [
                ...URI.endsWith("/event") ? [["", fields.noOutput] as const] : [],
                ...isTrigger && !URI.endsWith("/event") ? [["*", fields.anyProperty] as const] : [],
                ...listed.map(({ id, name }) => [id, name] as const)
              ])}
              onChange={(property_id) => set({ property_id })}
            />
            <SelectField
              label={fields.compare_type}
              path={`${path}.params.compare_type`}
              value={textOf(params["compare_type"])}
              options={[["", fields.noComparison], ...comparisons.map((type) => [type, type] as const)]}
              onChange={(compare_type) => set({ compare_type })}
            />
            {textOf(params["compare_type"]) !== "" && text("compare_val", fields.compare_val)}
          </>
        )}
    </>
  )
}

/** A value that the model does not have (any more) stays to be seen. */
const withCurrent = (
  value: string,
  options: ReadonlyArray<readonly [string, string]>
): ReadonlyArray<readonly [string, string]> =>
  options.some(([known]) => known === value) ? options : [[value, value || "–"], ...options]

const CronPart = ({ onChange, part: { URI, params }, path }: PartProps) => (
  <CronField
    expression={textOf(params["cron"])}
    timeZone={textOf(params["time_zone"])}
    path={`${path}.params`}
    onExpression={(cron) => onChange({ URI, params: { ...params, cron } })}
    onTimeZone={(time_zone) => onChange({ URI, params: { ...params, time_zone } })}
  />
)

const WindowPart = ({ onChange, part: { URI, params }, path }: PartProps) => {
  const { scenes: { fields } } = useTexts()
  const set = (changes: Part["params"]) => onChange({ URI, params: { ...params, ...changes } })
  const [days, setDays] = useText(params["days"], daysIn, (days) => (days as ReadonlyArray<string>).join(", "))
  const text = (name: string, label: string, hint?: string) => (
    <TextField
      label={label}
      path={`${path}.params.${name}`}
      {...hint === undefined ? {} : { hint }}
      value={textOf(params[name])}
      onInput={(value) => set({ [name]: value })}
    />
  )
  return (
    <>
      {text("start", fields.from, "HH:MM")}
      {text("end", fields.until, "HH:MM")}
      <TextField
        label={fields.days}
        hint={fields.daysHint}
        path={`${path}.params.days`}
        value={days}
        onInput={(text) => {
          setDays(text)
          set({ days: daysIn(text) })
        }}
      />
      {text("time_zone", fields.time_zone, fields.timeZoneHint)}
    </>
  )
}

const daysIn = (text: string): ReadonlyArray<string> | undefined => {
  const days = listOf(text)
  return days.length === 0 ? undefined : days
}

const RangePart = ({ onChange, part: { URI, params }, path }: PartProps) => {
  const { scenes: { fields } } = useTexts()
  const range = (params["time_range"] ?? {}) as Readonly<Record<string, number>>
  const field = (name: "start_timestamp" | "end_timestamp", label: string) => (
    <TextField
      label={label}
      path={`${path}.params.time_range.${name}`}
      type="datetime-local"
      value={range[name] ? localTime(range[name] * 1000).slice(0, 16) : ""}
      onInput={(text) =>
        onChange({
          URI,
          params: { ...params, time_range: { ...range, [name]: Math.floor(Date.parse(text) / 1000) || 0 } }
        })}
    />
  )
  return <>{field("start_timestamp", fields.from)}{field("end_timestamp", fields.until)}</>
}

/** As many as one can choose from in a list. */
const shown = 100

/** Chooses a scene; in a project with very many, one writes its id. */
const SceneTarget = ({ onChange, part: { URI, params }, path: part }: PartProps) => {
  const { scenes: { fields } } = useTexts()
  const scenes = useQuery((signal) => api.scenes.listScenes({ query: { page_size: shown }, signal }), [])
  const chosen = textOf(params["scene_id"])
  const path = `${part}.params.scene_id`
  const choose = (scene_id: string) => onChange({ URI, params: { ...params, scene_id } })
  if ((scenes.data?.total ?? 0) > shown) {
    return (
      <TextField
        label={fields.sceneId}
        hint={fields.sceneIdHint}
        path={path}
        value={chosen}
        onInput={(typed) => choose(typed.trim())}
      />
    )
  }
  return (
    <SelectField
      label={fields.scene_id}
      path={path}
      value={chosen}
      options={withCurrent(chosen, [
        ["", fields.chooseScene],
        ...(scenes.data?.results ?? []).map(({ id, name }) => [id, name] as const)
      ])}
      onChange={choose}
    />
  )
}

const WebhookPart = ({ onChange, part: { URI, params }, path }: PartProps) => {
  const { scenes: { fields } } = useTexts()
  const set = (changes: Part["params"]) => onChange({ URI, params: { ...params, ...changes } })
  return (
    <>
      <TextField
        label={fields.URL}
        path={`${path}.params.URL`}
        value={textOf(params["URL"])}
        onInput={(URL) => set({ URL })}
      />
      <SelectField
        label={fields.method}
        path={`${path}.params.method`}
        value={textOf(params["method"])}
        options={["POST", "PUT", "GET", "DELETE"].map((method) => [method, method] as const)}
        onChange={(method) => set({ method })}
      />
      <AreaField
        label={fields.body}
        hint={fields.bodyHint}
        path={`${path}.params.body`}
        rows={4}
        value={textOf(params["body"])}
        onInput={(body) => set({ body })}
      />
    </>
  )
}

const DelayPart = ({ onChange, part: { URI, params }, path }: PartProps) => {
  const { scenes: { fields } } = useTexts()
  return (
    <TextField
      label={fields.seconds}
      path={`${path}.params.seconds`}
      type="number"
      min={1}
      max={43_200}
      required
      value={textOf(params["seconds"])}
      onInput={(seconds) => onChange({ URI, params: { ...params, seconds: seconds === "" ? undefined : Number(seconds) } })}
    />
  )
}

/** Conditions and actions of the application: the console does not know their parameters. */
const OwnPart = ({ onChange, part: { URI, params }, path }: PartProps) => {
  const { scenes: { fields } } = useTexts()
  const [text, setText] = useText(params, objectOf, (params) => JSON.stringify(params, null, 2))
  return (
    <ObjectField
      holdsForm
      label={fields.json}
      path={`${path}.params`}
      rows={4}
      value={text}
      onInput={(text) => {
        setText(text)
        onChange({ URI, params: objectOf(text) ?? params })
      }}
    />
  )
}
