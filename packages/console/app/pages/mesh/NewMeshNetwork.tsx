/**
 * Creates a mesh network with keys that are given, or made.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { useTexts } from "../../text/text.ts"

export const NewMeshNetwork = (
  { onClose, onCreated }: { readonly onClose: () => void; readonly onCreated: () => void }
) => {
  const { common, mesh } = useTexts()
  const close = useClose(onClose)
  const goTo = useGoTo()
  const [networkKey, setNetworkKey] = useState("")
  const [appKey, setAppKey] = useState("")
  return (
    <Dialog title={mesh.create} onClose={onClose}>
      <Form
        submit={common.create}
        onCancel={onClose}
        onSubmit={async () => {
          const created = await api.mesh.createMeshNetwork({
            payload: {
              ...networkKey === "" ? {} : { network_key: networkKey },
              ...appKey === "" ? {} : { app_key: appKey }
            }
          })
          tell(mesh.created)
          onCreated()
          close()
          goTo(`/console/mesh/${created.network_key}`)
        }}
      >
        <TextField
          label={mesh.networkKey}
          hint={mesh.keyHint}
          path="network_key"
          value={networkKey}
          onInput={setNetworkKey}
        />
        <TextField label={mesh.appKey} hint={mesh.keyHint} path="app_key" value={appKey} onInput={setAppKey} />
      </Form>
    </Dialog>
  )
}
