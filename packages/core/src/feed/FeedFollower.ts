/**
 * What follows the feed in this process.
 */
import type { FeedEntry } from "./FeedStore.ts"

/** Whoever follows a project. Its functions run while a page of the feed is handed out: they return at once and do not throw. */
export interface FeedFollower {
  /** Takes the next event of the project. */
  readonly hear: (entry: FeedEntry) => void
  /** Events are missing here: the feed no longer has them. */
  readonly missed: () => void
}
