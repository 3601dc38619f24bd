/**
 * All attacks, in the order in which they run.
 */
import type { Attack } from "./Attack.ts"
import { deafReceivers } from "./attacks/DeafReceivers.ts"
import { docs } from "./attacks/Docs.ts"
import { eventStreams } from "./attacks/EventStreams.ts"
import { expensiveLists } from "./attacks/ExpensiveLists.ts"
import { heavyMessages } from "./attacks/HeavyMessages.ts"
import { idempotencyBodies } from "./attacks/IdempotencyBodies.ts"
import { idleConnections } from "./attacks/IdleConnections.ts"
import { leavingSessions } from "./attacks/LeavingSessions.ts"
import { nothing } from "./attacks/Nothing.ts"
import { registrations } from "./attacks/Registrations.ts"
import { reportFlood } from "./attacks/ReportFlood.ts"
import { sceneAvalanche } from "./attacks/SceneAvalanche.ts"
import { pipelinedRequests, smallRequests } from "./attacks/SmallRequests.ts"
import { unfinishedBodies } from "./attacks/UnfinishedBodies.ts"
import { unfinishedWebSockets } from "./attacks/UnfinishedWebSockets.ts"
import { webhookStorm } from "./attacks/WebhookStorm.ts"
import { wrongSignatures } from "./attacks/WrongSignatures.ts"

export const attacks: ReadonlyArray<Attack> = [
  nothing,
  heavyMessages,
  smallRequests,
  pipelinedRequests,
  reportFlood,
  deafReceivers,
  leavingSessions,
  unfinishedBodies,
  unfinishedWebSockets,
  idleConnections,
  wrongSignatures,
  registrations,
  sceneAvalanche,
  webhookStorm,
  eventStreams,
  docs,
  expensiveLists,
  idempotencyBodies
]
