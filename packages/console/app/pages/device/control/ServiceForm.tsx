/**
 * Calls a service: a field for each of its inputs.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { Form, SelectField, TextField } from "../../../parts/Form.tsx"
import { firstOfAll, type ServiceElement } from "../../../parts/model/Model.ts"
import { JsonField } from "../../../parts/model/ScalarFields.tsx"
import { ValueField } from "../../../parts/model/ValueField.tsx"
import { Card } from "../../../parts/Page.tsx"
import { useUrl } from "../../../parts/useUrl.ts"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { bodyOf, CallFields, type CallOptions, CallOutcome, type Outcome } from "./Call.tsx"

export const ServiceForm = ({ device, model }: TabProps) => {
  const { control } = useTexts().device
  const url = useUrl()
  const { services } = model
  const hasModel = model.properties.length + model.events.length + services.length > 0
  const service = services.find(({ id }) => id === url.get("service")) ?? services[0]
  if (hasModel && service === undefined) return null
  return (
    <Card title={control.services}>
      {service === undefined ? <FreeCall deviceId={device.device_id} /> : (
        <>
          {services.length > 1 && (
            <SelectField
              label={control.service}
              value={service.id}
              options={services.map(({ id, name }) => [id, name] as const)}
              onChange={(id) => url.set({ service: id }, true)}
            />
          )}
          <Call key={service.id} deviceId={device.device_id} service={service} />
        </>
      )}
    </Card>
  )
}

const Call = ({ deviceId, service }: { readonly deviceId: string; readonly service: ServiceElement }) => {
  const { control } = useTexts().device
  const [inputs, setInputs] = useState(() => firstOfAll(service.inputData))
  const [options, setOptions] = useState<CallOptions>({ wait: service.callType === "sync" ? "8" : "", ttl: "" })
  const [outcome, setOutcome] = useState<Outcome>()
  const call = async () => {
    setOutcome(undefined)
    setOutcome(
      await api.commands.callDeviceService({
        params: { device_id: deviceId, service_id: service.id },
        payload: { params: inputs as never, ...bodyOf(options) }
      })
    )
  }
  return (
    <>
      {service.desc !== undefined && service.desc !== "" && <p class="soft">{service.desc}</p>}
      <Form submit={control.call(service.name)} onSubmit={call}>
        {service.inputData.map(({ dataType, id, name }) => (
          <ValueField
            key={id}
            label={name}
            path={`params.${id}`}
            required
            type={dataType}
            value={inputs[id]}
            onChange={(value) => setInputs({ ...inputs, [id]: value })}
          />
        ))}
        <CallFields options={options} onChange={setOptions} />
      </Form>
      {outcome !== undefined && <CallOutcome deviceId={deviceId} outcome={outcome} outputs={service.outputData} />}
    </>
  )
}

/** Without a model any service can be called. */
const FreeCall = ({ deviceId }: { readonly deviceId: string }) => {
  const { control } = useTexts().device
  const [id, setId] = useState("")
  const [inputs, setInputs] = useState<unknown>({})
  const [options, setOptions] = useState<CallOptions>({ wait: "", ttl: "" })
  const [outcome, setOutcome] = useState<Outcome>()
  const call = async () => {
    setOutcome(undefined)
    setOutcome(
      await api.commands.callDeviceService({
        params: { device_id: deviceId, service_id: id },
        payload: { params: (inputs ?? {}) as never, ...bodyOf(options) }
      })
    )
  }
  return (
    <>
      <Form
        submit={control.call(id)}
        disabled={id === ""}
        onSubmit={call}
      >
        <TextField label={control.serviceId} required value={id} onInput={setId} />
        <JsonField label={control.inputs} path="params" value={inputs} onChange={setInputs} />
        <CallFields options={options} onChange={setOptions} />
      </Form>
      {outcome !== undefined && <CallOutcome deviceId={deviceId} outcome={outcome} />}
    </>
  )
}
