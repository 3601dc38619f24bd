/**
 * All drills, in the order in which they run.
 */
import type { Drill } from "./Drill.ts"
import {
  databaseFailsOver,
  databaseFrozen,
  databaseKilled,
  databaseLocked,
  diskFull,
  outOfConnections
} from "./faults/DatabaseFaults.ts"
import { lostNotices } from "./faults/LostNotices.ts"
import { million } from "./faults/Million.ts"
import { moves } from "./faults/Moves.ts"
import { nodeFrozen } from "./faults/NodeFrozen.ts"
import { nodeKilled } from "./faults/NodeKilled.ts"
import { floodOfReports, frozenSubscribers } from "./faults/Overload.ts"
import { rollingRestart } from "./faults/RollingRestart.ts"
import { stormOfConnects, stormOfHandshakes } from "./faults/Storms.ts"
import { upgrade } from "./faults/Upgrade.ts"
import { twoNodes } from "./faults/TwoNodes.ts"
import { workerKilled } from "./faults/Workers.ts"
import { wrongClocks } from "./faults/WrongClocks.ts"

export const drills: ReadonlyArray<Drill> = [
  twoNodes,
  moves,
  lostNotices,
  nodeKilled,
  nodeFrozen,
  wrongClocks,
  rollingRestart,
  upgrade,
  workerKilled,
  databaseKilled,
  databaseFailsOver,
  databaseFrozen,
  databaseLocked,
  outOfConnections,
  diskFull,
  stormOfConnects,
  stormOfHandshakes,
  floodOfReports,
  frozenSubscribers,
  million
]
