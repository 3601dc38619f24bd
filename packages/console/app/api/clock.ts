/**
 * The clock of the server: that of the browser may be wrong.
 */

/** Milliseconds by which the server is ahead of the browser. */
let ahead = 0

/** Notices what time it was for the server when it responded. */
export const noticeTime = ({ headers }: Response): void => {
  const at = Date.parse(headers.get("date") ?? "")
  if (!Number.isNaN(at)) ahead = at - Date.now()
}

/** Whether a time of the server is still to come. */
export const isToCome = (at: string): boolean => Date.parse(at) > Date.now() + ahead
