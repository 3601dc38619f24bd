/**
 * Sends bytes to the connected gateways of a mesh network.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { AreaField, Form } from "../../parts/Form.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"

export const RawData = ({ networkKey, onClose }: { readonly networkKey: string; readonly onClose: () => void }) => {
  const { mesh } = useTexts()
  const close = useClose(onClose)
  const [bytes, setBytes] = useState("")
  return (
    <Dialog title={mesh.send} onClose={onClose}>
      <Form
        submit={mesh.sendSubmit}
        onCancel={onClose}
        onSubmit={async () => {
          const raw_data = bytes.replace(/\s/g, "")
          await api.mesh.sendMeshRawData({ params: { network_key: networkKey }, payload: { raw_data } })
          tell(mesh.sent)
          close()
        }}
      >
        <p>{mesh.sendBody}</p>
        <AreaField
          label={mesh.bytes}
          hint={mesh.bytesHint}
          path="raw_data"
          required
          rows={4}
          value={bytes}
          onInput={setBytes}
        />
      </Form>
    </Dialog>
  )
}
