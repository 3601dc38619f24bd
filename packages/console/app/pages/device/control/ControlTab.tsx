/**
 * What one can ask of a device.
 */
import { canWrite, may } from "../../../api/session.ts"
import { Empty } from "../../../parts/Page.tsx"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { MessageForm } from "./MessageForm.tsx"
import { PropertyForm } from "./PropertyForm.tsx"
import { ServiceForm } from "./ServiceForm.tsx"

export const ControlTab = (props: TabProps) => {
  const { common, device: { control } } = useTexts()
  if (!canWrite("commands")) {
    return (
      <Empty title={control.operatorsOnly}>
        {may("operator") ? common.notByKey : common.needsRole(common.roles.operator)}
      </Empty>
    )
  }
  if (props.device.enabled_status === "disable") return <Empty title={control.disabled}>{control.disabledHint}</Empty>
  return (
    <div class="stack">
      {props.device.status !== "online" && <p class="notice warn">{control.offline}</p>}
      <PropertyForm {...props} />
      <div class="halves">
        <ServiceForm {...props} />
        <MessageForm {...props} />
      </div>
    </div>
  )
}
