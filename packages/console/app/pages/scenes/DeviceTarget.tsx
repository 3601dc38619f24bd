/**
 * A device that a scene sets properties of, or calls a service of.
 */
import { api } from "../../api/client.ts"
import { useQuery } from "../../api/useQuery.ts"
import { SelectField, TextField } from "../../parts/Form.tsx"
import { emptyModel, useModel, writableOf } from "../../parts/model/Model.ts"
import { FieldsOf } from "../../parts/model/ValueField.tsx"
import { useTexts } from "../../text/text.ts"
import type { Part } from "./draft.ts"

export const DeviceTarget = (
  { onChange, part: { URI, params }, path }: {
    readonly part: Part
    readonly path: string
    readonly onChange: (part: Part) => void
  }
) => {
  const { common, scenes: { fields } } = useTexts()
  const deviceId = String(params["device_id"] ?? "")
  const device = useQuery(
    async (signal) => deviceId === "" ? undefined : api.devices.getDevice({ params: { device_id: deviceId }, signal }),
    [deviceId]
  )
  const info = device.data?.device_info
  const { data: model = emptyModel } = useModel(info?.product_key)
  const set = (changes: Part["params"]) => onChange({ URI, params: { ...params, ...changes } })
  const isService = URI.endsWith("/service")
  const serviceId = String(params["service_id"] ?? "")
  const service = model.services.find(({ id }) => id === serviceId)
  const inputs = isService ? service?.inputData ?? [] : writableOf(model)
  return (
    <>
      <TextField
        label={fields.device_id}
        path={`${path}.params.device_id`}
        issue={device.error?.message}
        hint={info === undefined ? undefined : `${info.device_name}, ${info.product_name}`}
        value={deviceId}
        onInput={(device_id) => set({ device_id: device_id.trim() })}
      />
      {isService && (
        <SelectField
          label={fields.service_id}
          path={`${path}.params.service_id`}
          value={serviceId}
          options={[
            ["", common.none],
            ...model.services.filter(({ callType }) => callType === "async").map(({ id, name }) => [id, name] as const),
            ...serviceId === "" || service !== undefined ? [] : [[serviceId, serviceId] as const]
          ]}
          onChange={(service_id) => set({ service_id, items: {} })}
        />
      )}
      <FieldsOf
        label={fields.items}
        path={`${path}.params.items`}
        fields={inputs}
        values={(params["items"] ?? {}) as Readonly<Record<string, unknown>>}
        onChange={(items) => set({ items })}
      />
    </>
  )
}
