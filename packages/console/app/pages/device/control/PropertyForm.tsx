/**
 * Sets properties: a field for each that the thing model lets an application write.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { CheckField, Form } from "../../../parts/Form.tsx"
import { type PropertyElement, writableOf } from "../../../parts/model/Model.ts"
import { JsonField } from "../../../parts/model/ScalarFields.tsx"
import { ValueField } from "../../../parts/model/ValueField.tsx"
import { Card, Empty } from "../../../parts/Page.tsx"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { useShadow } from "../useShadow.ts"
import { bodyOf, CallFields, type CallOptions, CallOutcome, type Outcome } from "./Call.tsx"

type Values = Readonly<Record<string, unknown>>

export const PropertyForm = ({ device, model }: TabProps) => {
  const { control } = useTexts().device
  const [chosen, setChosen] = useState<Values>({})
  const [options, setOptions] = useState<CallOptions>({ wait: device.status === "online" ? "8" : "", ttl: "" })
  const [outcome, setOutcome] = useState<Outcome>()
  const hasModel = model.properties.length > 0
  const elements = writableOf(model)
  const count = Object.values(chosen).filter((value) => value !== undefined).length
  const set = async () => {
    setOutcome(undefined)
    const answered: Outcome = await api.commands.setDeviceProperties({
      params: { device_id: device.device_id },
      payload: { params: chosen as never, ...bodyOf(options) }
    })
    setOutcome(answered)
    // What a device has refused stays, so that one can change it, and so does what one has changed meanwhile.
    if (answered.state !== "failed") setChosen((now) => changesOf(chosen, now))
  }
  return (
    <Card title={control.properties}>
      {hasModel && elements.length === 0 ? <Empty title={control.nothingToSet} /> : (
        <Form submit={control.set(count)} disabled={count === 0} onSubmit={set}>
          {hasModel
            ? <Settings deviceId={device.device_id} elements={elements} chosen={chosen} onChange={setChosen} />
            : (
              <JsonField
                label={control.values}
                hint={control.noModel}
                path="params"
                value={count === 0 ? undefined : chosen}
                onChange={(values) => setChosen(isValues(values) ? values : {})}
              />
            )}
          <CallFields options={options} onChange={setOptions} />
        </Form>
      )}
      {outcome !== undefined && <CallOutcome deviceId={device.device_id} outcome={outcome} />}
    </Card>
  )
}

/** What differs from what was sent. */
const changesOf = (sent: Values, now: Values): Values =>
  Object.fromEntries(Object.entries(now).filter(([id, value]) => value !== sent[id]))

const isValues = (value: unknown): value is Values => typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Each field shows what the device has reported, until one changes it. One that is emptied
 * stays empty and is not sent: somebody empties it to type another value.
 */
const Settings = (
  { chosen, deviceId, elements, onChange }: {
    readonly deviceId: string
    readonly elements: ReadonlyArray<PropertyElement>
    readonly chosen: Values
    readonly onChange: (chosen: Values) => void
  }
) => {
  const { control } = useTexts().device
  const reported = useShadow(deviceId).data?.state.reported ?? {}
  const choose = (id: string, value: unknown) => onChange({ ...chosen, [id]: value ?? undefined })
  const leave = (id: string) => {
    const { [id]: _, ...others } = chosen
    onChange(others)
  }
  return (
    <div class="settings">
      {elements.map(({ dataType, desc, id, name }) => (
        <div key={id} class={chosen[id] === undefined ? "setting" : "setting chosen"}>
          <ValueField
            label={name}
            path={`params.${id}`}
            type={dataType}
            value={id in chosen ? chosen[id] : reported[id]}
            onChange={(value) => choose(id, value)}
          />
          <div class="row apart small">
            <CheckField
              label={<>{control.send}<span class="visually-hidden">{name}</span></>}
              checked={chosen[id] !== undefined}
              disabled={chosen[id] === undefined && reported[id] === undefined}
              onChange={(isOn) => isOn ? choose(id, reported[id]) : leave(id)}
            />
            {desc !== undefined && <span class="soft">{desc}</span>}
          </div>
        </div>
      ))}
    </div>
  )
}
