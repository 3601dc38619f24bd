/**
 * Lets a device in, keeps it out, frees it from its owner, deletes it.
 */
import { useLocation } from "preact-iso"
import { api } from "../../../api/client.ts"
import { ask } from "../../../parts/Dialog.tsx"
import { Card } from "../../../parts/Page.tsx"
import { tell, tellFailure } from "../../../parts/toasts.tsx"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"

export const Lifecycle = ({ device, reload }: TabProps) => {
  const { common, device: { lifecycle: texts } } = useTexts()
  const { route } = useLocation()
  const params = { device_id: device.device_id }
  const change = async (action: "enable" | "disable" | "bind" | "unbind") => {
    await api.devices.changeDeviceStatus({ params, payload: { action } })
    tell(common.saved)
    reload()
  }
  const askDisable = () =>
    ask({
      title: texts.disableTitle(device.device_name),
      body: texts.disableBody,
      action: texts.disable,
      danger: true,
      run: () => change("disable")
    })
  const askUnbind = () =>
    ask({
      title: texts.unbindTitle(device.device_name),
      body: texts.unbindBody,
      action: texts.unbind,
      danger: true,
      run: () => change("unbind")
    })
  const askDelete = () =>
    ask({
      title: texts.deleteTitle(device.device_name),
      body: texts.deleteBody,
      action: texts.delete,
      danger: true,
      typed: device.device_name,
      run: async () => {
        const { pathname } = location
        await api.devices.deleteDevice({ params })
        tell(common.removed)
        // The page may know by now that the device is gone, and no longer show this part: what counts is the address.
        if (location.pathname === pathname) route("/console/devices")
      }
    })
  return (
    <Card title={texts.title}>
      <div class="row">
        {device.enabled_status === "enable"
          ? <button type="button" class="button danger" onClick={askDisable}>{texts.disable}</button>
          : (
            <button type="button" class="button" onClick={() => void change("enable").catch(tellFailure)}>
              {texts.enable}
            </button>
          )}
        {device.bound
          ? <button type="button" class="button danger" onClick={askUnbind}>{texts.unbind}</button>
          : (
            <button type="button" class="button" onClick={() => void change("bind").catch(tellFailure)}>
              {texts.bind}
            </button>
          )}
        <button type="button" class="button danger" onClick={askDelete}>{texts.delete}</button>
      </div>
    </Card>
  )
}
