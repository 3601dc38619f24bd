/**
 * Times that devices give. The clock of a device may be wrong: a time that is far
 * ahead of the cloud's counts as now (docs/protocol/reports.md).
 */

/** How far a device's clock may be ahead of the cloud's, milliseconds. */
export const maxAhead = 5 * 60_000

/** Whether the time is too far ahead of `now`, both Unix milliseconds. */
export const isAhead = (time: number, now: number): boolean => time > now + maxAhead

/** The time that counts: the given one, or `now` if the given one is too far ahead. */
export const countedTime = (time: number, now: number): number => isAhead(time, now) ? now : time

/** What the device is told of a time that does not count. */
export const aheadRemark = "time: more than five minutes ahead of the cloud; the cloud's time counts"
