/**
 * Explains an error in one line.
 */

/** Returns the message of an error with the messages of its causes, none twice. */
export const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const reason = error.cause === undefined ? "" : explain(error.cause)
  return error.message.includes(reason) ? error.message : `${error.message}: ${reason}`
}
