/**
 * When the devices of a task are told (decisions, section 10).
 */

/** The golden ratio: its multiples fall evenly, in no visible order, between whole numbers. */
const scatter = 0.6180339887498949

/**
 * Milliseconds from the start of a roll-out until the device at `place`, 0 and
 * up, is told; the first one at once.
 *
 * A minute has `perMinute` slots of one length. Where in its slot a device is
 * told differs from slot to slot and from task to task, and is the same every
 * minute: no minute, wherever it begins, has more than `perMinute`.
 */
export const rolloutDelay = (taskId: number, place: number, perMinute: number): number => {
  const turns = (place % perMinute) * ((1 + taskId % 997) * scatter)
  return 60_000 * (place + (turns - Math.floor(turns))) / perMinute
}
