/**
 * All migrations, in their order.
 */
import type { Migration } from "./Migrator.ts"
import cloud from "./migrations/0001_cloud.ts"
import messages from "./migrations/0002_messages.ts"
import objects from "./migrations/0003_objects.ts"
import scenes from "./migrations/0010_scenes.ts"
import upgrades from "./migrations/0011_upgrades.ts"
import topology from "./migrations/0012_topology.ts"
import deviceAccess from "./migrations/0013_device_access.ts"
import jobs from "./migrations/0014_jobs.ts"
import records from "./migrations/0015_records.ts"
import history from "./migrations/0016_history.ts"
import feed from "./migrations/0017_feed.ts"
import presence from "./migrations/0018_presence.ts"
import activity from "./migrations/0019_activity.ts"
import browserSessions from "./migrations/0020_browser_sessions.ts"
import traces from "./migrations/0021_traces.ts"
import presenceHistory from "./migrations/0022_presence_history.ts"
import upgradeProgress from "./migrations/0023_upgrade_progress.ts"

export const migrations: ReadonlyArray<Migration> = [
  { number: 1, name: "cloud", sql: cloud },
  { number: 2, name: "messages", sql: messages },
  { number: 3, name: "objects", sql: objects },
  { number: 10, name: "scenes", sql: scenes },
  { number: 11, name: "upgrades", sql: upgrades },
  { number: 12, name: "topology", sql: topology },
  { number: 13, name: "device_access", sql: deviceAccess },
  { number: 14, name: "jobs", sql: jobs },
  { number: 15, name: "records", sql: records },
  { number: 16, name: "history", sql: history },
  { number: 17, name: "feed", sql: feed },
  { number: 18, name: "presence", sql: presence },
  { number: 19, name: "activity", sql: activity },
  { number: 20, name: "browser_sessions", sql: browserSessions },
  { number: 21, name: "traces", sql: traces },
  { number: 22, name: "presence_history", sql: presenceHistory },
  { number: 23, name: "upgrade_progress", sql: upgradeProgress }
]
