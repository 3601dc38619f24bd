/**
 * Sets properties of many devices at once.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { ObjectField, objectOf } from "../../parts/Fields.tsx"
import { Form } from "../../parts/Form.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"

export const SetProperties = (
  { count, onClose, scope }: {
    readonly scope: { readonly device_ids: ReadonlyArray<string> } | { readonly group_id: number }
    /** How many devices these are. */
    readonly count: number
    readonly onClose: () => void
  }
) => {
  const { devices } = useTexts()
  const close = useClose(onClose)
  const [text, setText] = useState("{\n  \n}")
  const params = objectOf(text)
  return (
    <Dialog title={devices.setProperties} onClose={onClose}>
      <Form
        submit={devices.setProperties}
        disabled={params === undefined}
        onCancel={onClose}
        onSubmit={async () => {
          await api.bulkCommands.createBulkCommand({ payload: { ...scope, params: params! } })
          tell(devices.bulkStarted)
          close()
        }}
      >
        <p>{devices.setPropertiesBody(count)}</p>
        <ObjectField label={devices.propertiesJson} path="params" value={text} onInput={setText} />
      </Form>
    </Dialog>
  )
}
