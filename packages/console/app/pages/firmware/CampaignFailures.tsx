/**
 * Why devices of a campaign have failed. Each reason leads to its devices.
 */
import { api } from "../../api/client.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Shown } from "../../parts/Shown.tsx"
import { Bar } from "../../parts/Small.tsx"
import { formatNumber, useTexts } from "../../text/text.ts"

/** `failed`: how many have; with each other number the reasons are counted again. */
export const CampaignFailures = (
  { failed, href, taskId }: {
    readonly taskId: string
    readonly failed: number
    /** The address of this page that shows the devices of a reason. */
    readonly href: (reason: string) => string
  }
) => {
  const { firmware: { campaign } } = useTexts()
  const query = useQuery((signal) => api.ota.getTaskFailures({ params: { task_id: taskId }, signal }), [taskId, failed])
  return (
    <Shown query={query}>
      {({ devices, reasons }) => {
        const others = devices - reasons.reduce((sum, reason) => sum + reason.devices, 0)
        return reasons.length === 0 ? <p class="soft">{campaign.noFailures}</p> : (
          <>
            <ul class="reasons">
              {reasons.map(({ devices: count, reason }) => (
                <li key={reason}>
                  <div class="row apart">
                    <a class="wrap" href={href(reason)}>{reason}</a>
                    <strong>{formatNumber(count)}</strong>
                  </div>
                  <Bar
                    label={reason}
                    parts={[
                      { title: campaign.states.failed, count, mood: "bad" },
                      { title: "", count: Math.max(0, devices - count), mood: "free" }
                    ]}
                  />
                </li>
              ))}
            </ul>
            {others > 0 && <p class="soft small">{campaign.otherReasons(formatNumber(others))}</p>}
          </>
        )
      }}
    </Shown>
  )
}
