/**
 * The clock of the server: that of the browser may be wrong.
 */
import { signal } from "@preact/signals"

/** Milliseconds by which the server is ahead of the browser. */
const ahead = signal(0)

/** The header names the second alone. Milliseconds. */
const tolerance = 2000

/** Notices what time it was for the server when it responded. */
export const noticeTime = ({ headers }: Response): void => {
  const next = Date.parse(headers.get("date") ?? "") - Date.now()
  if (Math.abs(next - ahead.peek()) > tolerance) ahead.value = next
}

/** What time it is for the server when it is `at` for the browser, Unix milliseconds. */
export const now = (at: number = Date.now()): number => at + ahead.value

/** Whether a time of the server is still to come. */
export const isToCome = (at: string): boolean => Date.parse(at) > now()
