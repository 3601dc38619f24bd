/**
 * When the cloud tells the devices of a task. See docs/protocol/upgrades.md.
 */

/** The golden ratio: the fractions of its multiples are spread evenly and in no visible order. */
const scatter = 0.6180339887498949

/**
 * Milliseconds from the start of a roll-out until the cloud tells the device at
 * `place`, which counts from 0. The first device is told at once.
 *
 * A minute has `perMinute` slots of equal length, one for each device. The moment
 * within the slot differs from slot to slot and from task to task, but not from
 * minute to minute: no 60 seconds, wherever they begin, have more than
 * `perMinute` devices.
 */
export const rolloutDelay = (taskId: number, place: number, perMinute: number): number => {
  const turns = (place % perMinute) * ((1 + taskId % 997) * scatter)
  return 60_000 * (place + (turns - Math.floor(turns))) / perMinute
}
