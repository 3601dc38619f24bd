/**
 * What a device is, how it is, and what it has said last.
 */
import { canWrite } from "../../../api/session.ts"
import type { TabProps } from "../DeviceTab.ts"
import { PresenceHistory } from "../presence/PresenceHistory.tsx"
import { Credentials } from "./Credentials.tsx"
import { CurrentValues } from "./CurrentValues.tsx"
import { Identity } from "./Identity.tsx"
import { Lifecycle } from "./Lifecycle.tsx"
import { Presence } from "./Presence.tsx"
import { Tags } from "./Tags.tsx"

export const OverviewTab = (props: TabProps) => (
  <div class="stack">
    <div class="halves">
      <div class="stack">
        <CurrentValues {...props} />
        <Tags {...props} />
      </div>
      <div class="stack">
        <Presence {...props} />
        <Identity {...props} />
        <Credentials {...props} />
        {canWrite("devices") && <Lifecycle {...props} />}
      </div>
    </div>
    <PresenceHistory {...props} />
  </div>
)
