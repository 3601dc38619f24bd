/**
 * Puts devices that are selected into a group.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form } from "../../parts/Form.tsx"
import { GroupField } from "../../parts/GroupField.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"

export const AddToGroup = (
  { ids, onClose }: { readonly ids: ReadonlyArray<string>; readonly onClose: () => void }
) => {
  const { groups } = useTexts()
  const close = useClose(onClose)
  const [group, setGroup] = useState("")
  return (
    <Dialog title={groups.addTo} onClose={onClose}>
      <Form
        submit={groups.addTo}
        disabled={group === ""}
        onCancel={onClose}
        onSubmit={async () => {
          const { added } = await api.deviceGroups.addDevicesToGroup({
            params: { group_id: group },
            payload: { device_ids: [...ids] }
          })
          tell(groups.added(added))
          close()
        }}
      >
        <GroupField isStatic value={group} onChange={setGroup} />
      </Form>
    </Dialog>
  )
}
