/**
 * The states of campaigns and of their devices.
 */
import { Badge, type Mood } from "../../parts/Small.tsx"
import { texts, useTexts } from "../../text/text.ts"

const taskMoods: ReadonlyArray<Mood> = ["plain", "busy", "good", "bad", "plain"]
const recordMoods: ReadonlyArray<Mood> = ["plain", "plain", "busy", "good", "bad", "plain"]

export const TaskStatus = ({ status }: { readonly status: number }) => {
  const { firmware: { campaigns } } = useTexts()
  return <Badge mood={taskMoods[status] ?? "plain"}>{campaigns.statuses[status] ?? status}</Badge>
}

export const RecordStatus = ({ status }: { readonly status: number }) => {
  const { firmware: { campaign } } = useTexts()
  return <Badge mood={recordMoods[status] ?? "plain"}>{campaign.recordStates[status] ?? status}</Badge>
}

/** Devices by their state, as shares of a bar. */
export interface Summary {
  readonly pending: number
  readonly upgrading: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
}

const order = [["succeeded", "good"], ["failed", "bad"], ["upgrading", "busy"], ["cancelled", "plain"], [
  "pending",
  "free"
]] as const

export const partsOf = (summary: Summary) =>
  order.map(([state, mood]) => ({ title: texts().firmware.campaign.states[state], count: summary[state], mood }))
