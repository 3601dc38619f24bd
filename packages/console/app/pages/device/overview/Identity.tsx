/**
 * What the device is.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { canWrite } from "../../../api/session.ts"
import { useQuery } from "../../../api/useQuery.ts"
import { Dialog } from "../../../parts/Dialog.tsx"
import { Form, TextField } from "../../../parts/Form.tsx"
import { Card, Facts } from "../../../parts/Page.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { Badge, Copied, Time } from "../../../parts/Small.tsx"
import { tell } from "../../../parts/toasts.tsx"
import { useClose } from "../../../parts/useClose.ts"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"

export const Identity = ({ device, reload }: TabProps) => {
  const { common, device: texts } = useTexts()
  const [isNaming, setNaming] = useState(false)
  const { identity } = texts
  return (
    <Card
      title={identity.title}
      actions={canWrite("devices") &&
        <button type="button" class="button small" onClick={() => setNaming(true)}>{identity.rename}</button>}
    >
      <Facts
        facts={[
          [common.productLabel, <a href={`/console/products/${device.product_key}`}>{device.product_name}</a>],
          [common.productKey, <Copied of={common.productKey} text={device.product_key} />],
          [common.deviceName, <Copied of={common.deviceName} text={device.device_name} />],
          [common.deviceId, <Copied of={common.deviceId} text={device.device_id} />],
          [identity.nickname, device.nickname || undefined],
          [identity.nodeType, texts.nodeTypes[device.node_type] ?? device.node_type],
          [identity.authType, texts.authTypes[device.auth_type] ?? device.auth_type],
          [identity.firmware, device.firmware_version ? <code>{device.firmware_version}</code> : undefined],
          [identity.mac, device.mac ? <code>{device.mac}</code> : undefined],
          [identity.batch, device.batch_id > 0
            ? <a href={`/console/devices?product=${device.product_key}&batch=${device.batch_id}`}>{device.batch_id}</a>
            : undefined],
          [identity.bound, device.bound ? common.yes : common.no],
          [common.created, <Time at={device.created_at} />],
          [identity.groups, <Groups deviceId={device.device_id} />]
        ]}
      />
      {isNaming && <Rename device={device} reload={reload} onClose={() => setNaming(false)} />}
    </Card>
  )
}

const Groups = ({ deviceId }: { readonly deviceId: string }) => {
  const { common } = useTexts()
  const query = useQuery((signal) => api.deviceGroups.listGroupsOfDevice({ params: { device_id: deviceId }, signal }), [
    deviceId
  ])
  return (
    <Shown query={query}>
      {({ results }) =>
        results.length === 0
          ? <span class="soft">{common.none}</span>
          : <span class="row">{results.map(({ group_id, name }) => <Badge key={group_id}>{name}</Badge>)}</span>}
    </Shown>
  )
}

const Rename = (
  { device, onClose, reload }: Pick<TabProps, "device" | "reload"> & { readonly onClose: () => void }
) => {
  const { common, device: { identity } } = useTexts()
  const close = useClose(onClose)
  const [nickname, setNickname] = useState(device.nickname)
  return (
    <Dialog title={identity.rename} onClose={onClose}>
      <Form
        submit={common.save}
        onCancel={onClose}
        onSubmit={async () => {
          await api.devices.changeDevice({ params: { device_id: device.device_id }, payload: { nickname } })
          tell(common.saved)
          reload()
          close()
        }}
      >
        <TextField label={identity.nickname} path="nickname" hint={identity.nicknameHint} value={nickname} onInput={setNickname} />
      </Form>
    </Dialog>
  )
}
