/**
 * Counts what a batch of the uplink says of the activity of projects. Neighbours that
 * are alike are counted together.
 */
import type { ProjectActivity } from "../activity/ProjectActivity.ts"
import type { Troubles } from "../activity/Troubles.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { DeviceReply } from "./DeviceReply.ts"
import { isProgress, type UplinkItem } from "./UplinkBatch.ts"
import type { UplinkMessage } from "./UplinkMessage.ts"

type Note = Pick<Troubles["Service"], "note">
type Count = Pick<ProjectActivity["Service"], "count">

/** Counts messages by their replies, and notes whose were refused. */
export const countMessages = (
  activity: Count,
  troubles: Note,
  items: ReadonlyArray<UplinkItem>,
  replies: ReadonlyArray<DeviceReply>
): void => {
  for (let place = 0; place < items.length;) {
    const item = items[place]!
    const { code } = replies[place]!
    const first = place++
    if (isProgress(item)) continue
    const { projectId } = item.device
    while (place < items.length && replies[place]!.code === code && isOf(items[place]!, projectId)) place++
    if (code === 200) activity.count(projectId, "accepted", place - first)
    else {
      activity.count(projectId, "refused", place - first, code)
      for (let refused = first; refused < place; refused++) {
        troubles.note(projectId, "refused", (items[refused] as UplinkMessage).device.deviceId, String(code))
      }
    }
  }
}

const isOf = (item: UplinkItem, projectId: string): boolean => !isProgress(item) && item.device.projectId === projectId

/** Counts commands to which devices have replied. */
export const countReplied = (activity: Count, happened: ReadonlyArray<DomainEvent>): void => {
  for (const event of happened) {
    if (event._tag !== "CommandReplied") continue
    if (event.code === 200) activity.count(event.device.projectId, "replied")
    else activity.count(event.device.projectId, "failed", 1, event.code)
  }
}
