/**
 * What can be done with all selected devices.
 */
import { useState } from "preact/hooks"
import { ApiError } from "../../api/ApiError.ts"
import { api } from "../../api/client.ts"
import { asApiError } from "../../api/useQuery.ts"
import { ask, Dialog } from "../../parts/Dialog.tsx"
import { AreaField, Form } from "../../parts/Form.tsx"
import { tell } from "../../parts/toasts.tsx"
import { texts, useTexts } from "../../text/text.ts"

export const BulkActions = ({ ids, onDone }: { readonly ids: ReadonlyArray<string>; readonly onDone: () => void }) => {
  const { common, devices } = useTexts()
  const [isSetting, setSetting] = useState(false)
  const change = (action: "enable" | "disable") => () =>
    each(ids, (device_id) => api.devices.changeDeviceStatus({ params: { device_id }, payload: { action } }))
      .then((count) => tell(devices.done(count)))
      .finally(onDone)
  return (
    <div class="row" role="toolbar" aria-label={common.selected(ids.length)}>
      <strong>{common.selected(ids.length)}</strong>
      <button type="button" class="button small" onClick={() => setSetting(true)}>{devices.setProperties}</button>
      <button type="button" class="button small" onClick={() => void change("enable")()}>{devices.enable}</button>
      <button
        type="button"
        class="button small"
        onClick={() =>
          ask({
            title: devices.askDisable(ids.length),
            body: devices.askDisableBody,
            action: devices.disable,
            danger: true,
            run: change("disable")
          })}
      >
        {devices.disable}
      </button>
      <button
        type="button"
        class="button small danger"
        onClick={() =>
          ask({
            title: devices.askRemove(ids.length),
            body: devices.askRemoveBody,
            action: common.remove,
            danger: true,
            run: () =>
              each(ids, (device_id) => api.devices.deleteDevice({ params: { device_id } }))
                .then((count) => tell(devices.removed(count)))
                .finally(onDone)
          })}
      >
        {common.remove}
      </button>
      {isSetting && <SetProperties ids={ids} onClose={() => setSetting(false)} />}
    </div>
  )
}

/** Does it for some devices at a time. Fails when one failed, and says how many did not. */
const each = async (ids: ReadonlyArray<string>, run: (id: string) => Promise<unknown>): Promise<number> => {
  let done = 0
  const failures: Array<ApiError> = []
  const waiting = [...ids]
  const work = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      try {
        await run(id)
        done++
      } catch (error) {
        failures.push(asApiError(error))
      }
    }
  }
  await Promise.all(Array.from({ length: 6 }, work))
  const [first] = failures
  if (first === undefined) return done
  throw new ApiError(first.code, texts().devices.partly(done, failures.length, first.message), first.data)
}

const SetProperties = ({ ids, onClose }: { readonly ids: ReadonlyArray<string>; readonly onClose: () => void }) => {
  const { devices } = useTexts()
  const [text, setText] = useState("{\n  \n}")
  const params = parse(text)
  return (
    <Dialog title={devices.setProperties} onClose={onClose}>
      <Form
        submit={devices.setProperties}
        disabled={params === undefined}
        onCancel={onClose}
        onSubmit={async () => {
          await api.bulkCommands.createBulkCommand({ payload: { device_ids: [...ids], params: params! } })
          tell(devices.bulkStarted)
          onClose()
        }}
      >
        <p>{devices.setPropertiesBody}</p>
        <AreaField
          label={devices.propertiesJson}
          path="params"
          issue={params === undefined ? devices.invalidJson : undefined}
          value={text}
          onInput={setText}
        />
      </Form>
    </Dialog>
  )
}

const parse = (text: string): Readonly<Record<string, never>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Readonly<Record<string, never>>
      : undefined
  } catch {
    return undefined
  }
}
