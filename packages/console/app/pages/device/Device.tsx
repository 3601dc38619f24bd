/**
 * One device: what it is, what it says, and what one can ask of it.
 */
import type { ComponentType } from "preact"
import { useRoute } from "preact-iso"
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { ownProducts } from "../../api/session.ts"
import { type Query, useQuery } from "../../api/useQuery.ts"
import { deviceHref, StatusBadge } from "../../parts/Devices.tsx"
import { emptyModel, useModel } from "../../parts/model/Model.ts"
import { Empty, Page, Tabs } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge } from "../../parts/Small.tsx"
import { useTexts } from "../../text/text.ts"
import { CommandsTab } from "./CommandsTab.tsx"
import { ControlTab } from "./control/ControlTab.tsx"
import { DataTab } from "./data/DataTab.tsx"
import "./device.css"
import type { DeviceInfo, TabProps } from "./DeviceTab.ts"
import { DiagnosisTab } from "./DiagnosisTab.tsx"
import { EventsTab } from "./EventsTab.tsx"
import { FirmwareTab } from "./FirmwareTab.tsx"
import { OverviewTab } from "./overview/OverviewTab.tsx"
import { ShadowTab } from "./ShadowTab.tsx"
import { TopologyTab } from "./TopologyTab.tsx"
import { TraceTab } from "./TraceTab.tsx"

const tabs = {
  overview: OverviewTab,
  data: DataTab,
  shadow: ShadowTab,
  control: ControlTab,
  commands: CommandsTab,
  events: EventsTab,
  firmware: FirmwareTab,
  topology: TopologyTab,
  trace: TraceTab,
  diagnosis: DiagnosisTab
} satisfies Readonly<Record<string, ComponentType<TabProps>>>
type TabId = keyof typeof tabs

const noSuchDevice = 40402

const Device = () => {
  const { device, shell } = useTexts()
  const { params: { deviceId = "", tab = "" } } = useRoute()
  const current = Object.hasOwn(tabs, tab) ? tab as TabId : "overview"
  const [isDeleted, setDeleted] = useState(false)
  const query = useQuery(async (signal) => {
    const { device_info } = await api.devices.getDevice({ params: { device_id: deviceId }, signal })
    return device_info
  }, [deviceId])
  const crumbs = [{ title: shell.pages.devices, href: "/console/devices" }]
  const isGone = query.error?.code === noSuchDevice
  if (isDeleted || isGone) {
    const wasThere = isDeleted || query.data !== undefined
    return (
      <Page title={query.data?.device_name ?? deviceId} crumbs={crumbs}>
        <Empty
          title={wasThere ? device.deleted : device.unknown}
          actions={<a class="button" href="/console/devices">{device.toDevices}</a>}
        >
          {wasThere ? device.deletedHint : device.unknownHint}
        </Empty>
      </Page>
    )
  }
  const { data } = query
  return (
    <Page
      title={data === undefined ? deviceId : data.nickname || data.device_name}
      tab={current === "overview" ? undefined : device.tabs[current]}
      crumbs={crumbs}
      lead={data === undefined ? undefined : <Lead device={data} />}
    >
      <Shown query={query}>
        {(data) => <DeviceTabs device={data} current={current} query={query} onDeleted={() => setDeleted(true)} />}
      </Shown>
    </Page>
  )
}

/** One listener for all events of the device, so that the stream stays open while one goes from tab to tab. */
const useDeviceEvents = (
  { device_id, product_key }: DeviceInfo,
  { change, reload }: Query<DeviceInfo>,
  onDeleted: () => void
) =>
  useLive({ device_id, product_key }, (event) => {
    if (event.type === "lifecycle" && event["action"] === "delete") return onDeleted()
    if (event.type === "status") {
      change((device) => ({ ...device, status: event["status"] as DeviceInfo["status"] }))
    }
    if (event.type !== "property" && event.type !== "event" && event.type !== "reply") reload()
  })

const Lead = ({ device }: { readonly device: DeviceInfo }) => {
  const texts = useTexts()
  return (
    <span class="row">
      <StatusBadge status={device.status} />
      {device.enabled_status === "disable" && <Badge mood="bad">{texts.device.disabled}</Badge>}
      <a href={`/console/products/${device.product_key}`}>{device.product_name}</a>
      {device.nickname !== "" && <code>{device.device_name}</code>}
    </span>
  )
}

const DeviceTabs = (
  { current, device, onDeleted, query }: {
    readonly device: DeviceInfo
    readonly current: TabId
    readonly query: Query<DeviceInfo>
    readonly onDeleted: () => void
  }
) => {
  const texts = useTexts()
  useDeviceEvents(device, query, onDeleted)
  const model = useModel(device.product_key)
  const Tab: ComponentType<TabProps> = tabs[current]
  return (
    <>
      <Tabs
        label={texts.device.tabsLabel}
        current={current}
        tabs={idsOf(device).map((id) => ({
          id,
          title: texts.device.tabs[id],
          href: deviceHref(device.device_id, id === "overview" ? undefined : id)
        }))}
      />
      <Shown query={model.error === undefined ? model : { ...model, data: model.data ?? emptyModel }}>
        {(data) => <Tab device={device} model={data} reload={query.reload} />}
      </Shown>
    </>
  )
}

/** A device that stands alone has no topology, and a key that is limited to products may not read one. */
const idsOf = ({ node_type }: DeviceInfo): ReadonlyArray<TabId> =>
  (Object.keys(tabs) as ReadonlyArray<TabId>).filter((id) =>
    id !== "topology" || node_type !== "direct" && ownProducts.value === undefined
  )

export default Device
