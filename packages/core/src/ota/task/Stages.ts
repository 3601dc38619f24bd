/**
 * Stages of an upgrade task: at first a part of its devices may have the
 * firmware, then a greater one, at last all. See docs/api/firmware.md.
 */
import type { OtaTask } from "./UpgradeTask.ts"
import { deviceCount, isAborted, isOngoing } from "./UpgradeStateMachine.ts"

/** How many stages the task has, at least 1. */
export const stageCount = ({ stages }: Pick<OtaTask, "stages">): number => stages.length + 1

/** Whether a device that joins the task has to wait for a later stage. */
export const holdsNewcomers = (task: Pick<OtaTask, "stage" | "stages">): boolean => task.stage < stageCount(task)

/** How many devices of the task may have the firmware in the stage, which counts from 1: those at the first places. */
export const stageSize = ({ counts, stages }: Pick<OtaTask, "counts" | "stages">, stage: number): number => {
  const devices = deviceCount(counts)
  const percent = stages[stage - 1]
  return percent === undefined ? devices : Math.ceil(devices * percent / 100)
}

/** The devices of a task that may have the firmware. */
export interface OpenShare {
  readonly devices: number
  readonly succeeded: number
}

/** The best share that the counts admit: devices that join, or are cancelled while they are held, are none of it. */
const bestShare = (task: OtaTask): OpenShare => ({
  devices: task.isDynamic ? 1 : Math.max(stageSize(task, task.stage) - task.counts.cancelled, 1),
  succeeded: task.counts.succeeded
})

/**
 * Whether the next stage opens by itself: enough devices of those that may have
 * the firmware have succeeded, and too many have not failed. `open`: those whose
 * records are not held; others may run the version already. Default: the best that
 * the counts of the task admit, so that `false` needs no look at its records.
 */
export const isStagePassed = (task: OtaTask, open: OpenShare = bestShare(task)): boolean =>
  task.kind === "upgrade" && task.stageSuccessPercent > 0 && isOngoing(task) && !isAborted(task) &&
  task.stage < stageCount(task) && open.devices > 0 &&
  open.succeeded * 100 >= open.devices * task.stageSuccessPercent
