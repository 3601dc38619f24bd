/**
 * What follows the feed in this process.
 */
import type { DeviceId } from "../device/Device.ts"
import type { FeedEntry } from "./FeedStore.ts"

/** Whoever follows a project. Its functions run while a page of the feed is handed out: they return at once and do not throw. */
export interface FeedFollower {
  /** Devices whose events it hears; others cost nothing. Undefined: all events of the project. */
  readonly deviceIds?: ReadonlyArray<DeviceId> | undefined
  /** Takes the next event. */
  readonly hear: (entry: FeedEntry) => void
  /** Events are missing here: the feed no longer has them. */
  readonly missed: () => void
}
