/**
 * Which sub-devices reach the cloud through a gateway.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { useLive } from "../../api/live.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery, useQuery } from "../../api/useQuery.ts"
import { DeviceLink, ProductField, useProducts } from "../../parts/Devices.tsx"
import { ask, Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Card, Empty } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { texts as currentTexts, useTexts } from "../../text/text.ts"
import type { TabProps } from "./DeviceTab.ts"

type Carried = Data<typeof api.topology.listTopology>["sub_devices"][number]

export const TopologyTab = ({ device }: TabProps) => {
  return device.node_type === "gateway"
    ? <Gateway deviceId={device.device_id} />
    : <SubDevice deviceId={device.device_id} />
}

const SubDevice = ({ deviceId }: { readonly deviceId: string }) => {
  const { device: { topology: texts } } = useTexts()
  const query = usePolledQuery(
    (signal) => api.topology.readGateway({ params: { device_id: deviceId }, signal }),
    [deviceId],
    10
  )
  return (
    <Shown query={query}>
      {({ gateway }) =>
        gateway === null
          ? (
            <Empty title={texts.noGateway} actions={<a class="button" href="/console/gateways">{texts.toGateways}</a>}>
              {texts.noGatewayHint}
            </Empty>
          )
          : (
            <Card
              title={texts.gateway}
              actions={<a class="button" href={`/console/gateways?${new URLSearchParams({ product: gateway.product_key, gateway: gateway.device_id })}`}>{texts.toTree}</a>}
            >
              <p>
                {texts.subDevice} <DeviceLink id={gateway.device_id} name={gateway.device_name} />
              </p>
            </Card>
          )}
    </Shown>
  )
}

const Gateway = ({ deviceId }: { readonly deviceId: string }) => {
  const { device: { topology: texts } } = useTexts()
  const [isOpening, setOpening] = useState(false)
  const open = usePolledQuery(
    (signal) => api.topology.readAddSession({ params: { device_id: deviceId }, signal }),
    [deviceId],
    5
  )
  const session = open.data?.session ?? undefined
  const query = useQuery((signal) => api.topology.listTopology({ params: { device_id: deviceId }, signal }), [deviceId])
  useLive({ device_id: deviceId }, (event) => {
    if (event.type === "topology") query.reload()
  })
  const stop = async (session_id: string) => {
    await api.topology.changeTopology({
      params: { device_id: deviceId },
      payload: { action: "sub.add.stop", session_id }
    })
    open.reload()
  }
  return (
    <Card
      title={texts.title}
      actions={canWrite("topology") && session === undefined &&
        <button type="button" class="button" onClick={() => setOpening(true)}>{texts.open}</button>}
    >
      {session !== undefined && (
        <div class="notice row apart" role="status">
          <span>{texts.isOpen} <Time at={session.ends_at} /></span>
          {canWrite("topology") && (
            <button
              type="button"
              class="button small"
              onClick={() => void stop(session.session_id).catch(tellFailure)}
            >
              {texts.stop}
            </button>
          )}
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
      {isOpening && <OpenSession deviceId={deviceId} onOpened={open.reload} onClose={() => setOpening(false)} />}
    </Card>
  )
}

const columnsOf = (gatewayId: string, reload: () => void): ReadonlyArray<Column<Carried>> => {
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
        canWrite("topology") && (
          <button type="button" class="button small danger" onClick={() => askRemove(gatewayId, subDevice, reload)}>
            {texts.remove}
          </button>
        )
    }
  ]
}

const askRemove = (gatewayId: string, { device_name, product_key }: Carried, reload: () => void) => {
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
    readonly onOpened: () => void
    readonly onClose: () => void
  }
) => {
  const { common, device: { topology: texts } } = useTexts()
  const close = useClose(onClose)
  const products = useProducts()
  const [seconds, setSeconds] = useState("60")
  const [productKey, setProductKey] = useState("")
  const open = async () => {
    await api.topology.changeTopology({
      params: { device_id: deviceId },
      payload: {
        action: "sub.add.start",
        params: { timeout: Number(seconds), ...productKey === "" ? {} : { product_keys: [productKey] } }
      }
    })
    onOpened()
    close()
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
          required
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
