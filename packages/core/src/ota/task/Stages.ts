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

/**
 * Whether the next stage opens by itself: enough devices of those that may have
 * the firmware have succeeded, and too many have not failed. `succeeded`: how many
 * of those at the first {@link stageSize} places have succeeded; others may run
 * the version already. Default: all of the task that have, so that `false` needs
 * no look at its records.
 */
export const isStagePassed = (task: OtaTask, succeeded: number = task.counts.succeeded): boolean =>
  task.kind === "upgrade" && task.stageSuccessPercent > 0 && isOngoing(task) && !isAborted(task) &&
  task.stage < stageCount(task) &&
  succeeded * 100 >= stageSize(task, task.stage) * task.stageSuccessPercent
