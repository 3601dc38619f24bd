/**
 * What a campaign will touch, before it starts: how many devices, in which stages, for
 * how long, and when it stops.
 */
import { api } from "../../api/client.ts"
import type { Body, Data } from "../../api/Operations.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Shown } from "../../parts/Shown.tsx"
import { formatNumber, type Texts, useTexts } from "../../text/text.ts"
import "./firmware.css"

type Draft = Body<typeof api.ota.createUpgradeTask>
type PlanTexts = Texts["firmware"]["plan"]

/** The devices of a campaign: all of the product, those of a group, or those that are named. */
export type Scope = "all" | "group" | "devices"

/** `named`: how many devices are. */
export const CampaignPlan = (
  { draft, firmware: { product_key, version }, group, named, scope }: {
    readonly firmware: Data<typeof api.ota.getFirmware>
    readonly scope: Scope
    readonly group: string
    readonly named: number
    readonly draft: Draft
  }
) => {
  const { firmware: { plan } } = useTexts()
  const query = useQuery(async (signal) => {
    if (scope === "devices") return named
    if (scope === "group" && group === "") return 0
    const { total } = scope === "all"
      ? await api.devices.listDevices({ query: { product_key, page_size: 1 }, signal })
      : await api.deviceGroups.listDevicesOfGroup({ params: { group_id: group }, query: { page_size: 1 }, signal })
    return total
  }, [product_key, scope, group, named])
  return (
    <Shown query={query}>
      {(devices) => (
        <>
          <p><strong>{plan.atMost(formatNumber(devices))}</strong> {plan.of[scope]}</p>
          <p class="soft small">{plan.leftOut(version)}</p>
          {devices > 0 && (
            <ul class="plan">
              <li>{paceOf(plan, devices, draft)}</li>
              {stagesOf(plan, devices, draft).map((stage) => <li key={stage}>{stage}</li>)}
              {draft.abort_threshold_percent !== undefined && (
                <li>{plan.stops(draft.abort_threshold_percent, draft.abort_min_executed ?? 1)}</li>
              )}
            </ul>
          )}
        </>
      )}
    </Shown>
  )
}

/** How long it takes until all devices have been told. */
const paceOf = (
  plan: PlanTexts,
  devices: number,
  { cloud_push, maximum_per_minute: rate = 0, need_app_confirm }: Draft
): string => {
  if (cloud_push !== true) return plan.asked
  if (!(rate > 0)) return plan.noRate
  const told = plan.told(durationOf(devices / rate), formatNumber(rate))
  return need_app_confirm === true ? `${plan.confirmed} ${told}` : told
}

const stagesOf = (plan: PlanTexts, devices: number, { stages = [] }: Draft): ReadonlyArray<string> =>
  stages.length === 0 ? [] : [...stages, 100].map((percent, place) =>
    plan.stage(place + 1, formatNumber(Math.ceil(devices * percent / 100)), percent)
  )

const durationOf = (minutes: number): string => {
  const [value, unit] = minutes < 120
    ? [Math.max(1, Math.ceil(minutes)), "minute"]
    : minutes < 48 * 60
    ? [minutes / 60, "hour"]
    : [minutes / 1440, "day"]
  return formatNumber(value, { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 1 })
}
