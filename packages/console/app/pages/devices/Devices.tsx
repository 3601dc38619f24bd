/**
 * All devices of the project, their batches, and commands to many of them.
 */
import { canWrite, ownProducts } from "../../api/session.ts"
import { Page, Tabs } from "../../parts/Page.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { useTexts } from "../../text/text.ts"
import { Authorities } from "./Authorities.tsx"
import { Batches } from "./Batches.tsx"
import { BulkCommands } from "./BulkCommands.tsx"
import { DeviceList } from "./DeviceList.tsx"
import { Groups } from "./Groups.tsx"

const allViews = ["list", "groups", "batches", "bulk", "authorities"] as const

/** What a key that is limited to products may read. */
const viewsOfProducts = ["list", "batches"] as const

const Devices = () => {
  const { devices, shell } = useTexts()
  const url = useUrl()
  const views = ownProducts.value === undefined ? allViews : viewsOfProducts
  const view = views.find((view) => view === url.get("view")) ?? "list"
  return (
    <Page
      title={shell.pages.devices}
      tab={view === "list" ? undefined : devices.tabs[view]}
      lead={devices.lead}
      actions={canWrite("devices") && <a class="button primary" href="/console/devices/connect">{devices.connect}</a>}
    >
      <Tabs
        label={shell.pages.devices}
        current={view}
        tabs={views.map((id) => ({
          id,
          title: devices.tabs[id],
          href: id === "list" ? "/console/devices" : `/console/devices?view=${id}`
        }))}
      />
      {view === "list" && <DeviceList />}
      {view === "groups" && <Groups />}
      {view === "batches" && <Batches />}
      {view === "bulk" && <BulkCommands />}
      {view === "authorities" && <Authorities />}
    </Page>
  )
}

export default Devices
