/**
 * Which sub-devices reach the cloud through a gateway.
 */
import { useEffect, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { useLive } from "../../api/live.ts"
import { may } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { DeviceLink, ProductField, useProducts } from "../../parts/Devices.tsx"
import { ask, Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Card, Empty } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { texts as currentTexts, useTexts } from "../../text/text.ts"
import type { TabProps } from "./DeviceTab.ts"

type SubDevice = Data<typeof api.topology.listTopology>["sub_devices"][number]

/** Sub-devices may join until then. */
interface Session {
  readonly id: string
  readonly until: number
}

export const TopologyTab = ({ device }: TabProps) => {
  const { device: { topology: texts } } = useTexts()
  return device.node_type === "gateway"
    ? <Gateway deviceId={device.device_id} />
    : (
      <Empty title={texts.subDevice} actions={<a class="button" href="/console/gateways">{texts.toGateways}</a>}>
        {texts.subDeviceHint}
      </Empty>
    )
}

const Gateway = ({ deviceId }: { readonly deviceId: string }) => {
  const { device: { topology: texts } } = useTexts()
  const [isOpening, setOpening] = useState(false)
  const [session, setSession] = useState<Session>()
  const query = useQuery((signal) => api.topology.listTopology({ params: { device_id: deviceId }, signal }), [deviceId])
  useLive({ device_id: deviceId }, (event) => {
    if (event.type === "topology") query.reload()
  })
  useEffect(() => {
    if (session === undefined) return
    const timer = setTimeout(() => setSession(undefined), Math.max(0, session.until - Date.now()))
    return () => clearTimeout(timer)
  }, [session])
  const stop = async ({ id }: Session) => {
    await api.topology.changeTopology({
      params: { device_id: deviceId },
      payload: { action: "sub.add.stop", session_id: id }
    })
    setSession(undefined)
  }
  return (
    <Card
      title={texts.title}
      actions={may("operator") && session === undefined &&
        <button type="button" class="button" onClick={() => setOpening(true)}>{texts.open}</button>}
    >
      {session !== undefined && (
        <div class="notice row apart" role="status">
          <span>{texts.isOpen} <Time at={session.until} /></span>
          <button type="button" class="button small" onClick={() => void stop(session).catch(tellFailure)}>
            {texts.stop}
          </button>
        </div>
      )}
      <Shown query={query}>
        {({ sub_devices }) =>
          sub_devices.length === 0 ? <Empty title={texts.empty}>{texts.emptyHint}</Empty> : (
            <Table
              caption={texts.title}
              columns={columnsOf(deviceId, query.reload)}
              rows={sub_devices}
              keyOf={({ device_id }) => device_id}
            />
          )}
      </Shown>
      {isOpening && <OpenSession deviceId={deviceId} onOpened={setSession} onClose={() => setOpening(false)} />}
    </Card>
  )
}

const columnsOf = (gatewayId: string, reload: () => void): ReadonlyArray<Column<SubDevice>> => {
  const { common, device: { topology: texts } } = currentTexts()
  return [
    {
      id: "name",
      title: common.deviceName,
      cell: ({ device_id, device_name }) => <DeviceLink id={device_id} name={device_name} />
    },
    {
      id: "product",
      title: common.productKey,
      cell: ({ product_key }) => <a href={`/console/products/${product_key}`}>{product_key}</a>
    },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: (subDevice) =>
        may("operator") && (
          <button type="button" class="button small danger" onClick={() => askRemove(gatewayId, subDevice, reload)}>
            {texts.remove}
          </button>
        )
    }
  ]
}

const askRemove = (gatewayId: string, { device_name, product_key }: SubDevice, reload: () => void) => {
  const { common, device: { topology: texts } } = currentTexts()
  ask({
    title: texts.removeTitle(device_name),
    body: texts.removeBody,
    action: texts.remove,
    danger: true,
    run: async () => {
      await api.topology.removeSubDevices({
        params: { device_id: gatewayId },
        payload: { params: [{ device_name, product_key }] }
      })
      tell(common.removed)
      reload()
    }
  })
}

const OpenSession = (
  { deviceId, onClose, onOpened }: {
    readonly deviceId: string
    readonly onOpened: (session: Session) => void
    readonly onClose: () => void
  }
) => {
  const { common, device: { topology: texts } } = useTexts()
  const products = useProducts()
  const [seconds, setSeconds] = useState("60")
  const [productKey, setProductKey] = useState("")
  const open = async () => {
    const opened = await api.topology.changeTopology({
      params: { device_id: deviceId },
      payload: {
        action: "sub.add.start",
        params: { timeout: Number(seconds), ...productKey === "" ? {} : { product_keys: [productKey] } }
      }
    }) as { readonly session_id: string }
    onOpened({ id: opened.session_id, until: Date.now() + Number(seconds) * 1000 })
    onClose()
  }
  return (
    <Dialog title={texts.open} onClose={onClose}>
      <Form submit={texts.open} onCancel={onClose} onSubmit={open}>
        <p class="soft">{texts.openHint}</p>
        <TextField
          label={texts.seconds}
          path="params.timeout"
          type="number"
          min="1"
          max="3600"
          value={seconds}
          onInput={setSeconds}
        />
        <ProductField
          label={common.productLabel}
          emptyTitle={common.anyProduct}
          products={products}
          fits={({ node_type }) => node_type === "gateway-sub"}
          value={productKey}
          onChange={setProductKey}
        />
      </Form>
    </Dialog>
  )
}
