/**
 * Whether a device is connected, and what keeps it from it.
 */
import { api } from "../../../api/client.ts"
import { useQuery } from "../../../api/useQuery.ts"
import { deviceHref, StatusBadge } from "../../../parts/Devices.tsx"
import { Card, Facts } from "../../../parts/Page.tsx"
import { Ago, Badge } from "../../../parts/Small.tsx"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"

export const Presence = ({ device }: TabProps) => {
  const { common, device: texts } = useTexts()
  const { identity, presence } = texts
  const query = useQuery(
    (signal) => api.devices.listConnectRefusals({ params: { device_id: device.device_id }, signal }),
    [device.device_id, device.status]
  )
  const refused = query.data?.results[0]
  return (
    <Card
      title={presence.title}
      actions={<a class="button small" href={deviceHref(device.device_id, "trace")}>{presence.trace}</a>}
    >
      <Facts
        facts={[
          [common.status, (
            <span class="row">
              <StatusBadge status={device.status} />
              {device.enabled_status === "disable" && <Badge mood="bad">{texts.disabled}</Badge>}
            </span>
          )],
          [identity.address, device.ip ? <code>{device.ip}</code> : undefined],
          [identity.registered, <Ago at={device.register_at} />],
          [presence.refused, refused === undefined ? undefined : (
            <span class="wrap">
              {refused.reason}, <Ago at={refused.time} />{" "}
              <a href={deviceHref(device.device_id, "diagnosis")}>{presence.more}</a>
            </span>
          )]
        ]}
      />
      {device.status === "unactive" && (
        <p class="notice">
          {presence.never} <a href={`/console/devices/connect?product=${device.product_key}&device=${device.device_id}`}>{presence.connect}</a>
        </p>
      )}
    </Card>
  )
}
