/**
 * How signals end the process. The first SIGTERM or SIGINT stops the server
 * (`NodeRuntime.runMain` sees to it); a second one ends the process at once.
 */

/** A terminal and npm both send a signal when a user interrupts once, milliseconds apart. */
const sameSignalMillis = 500

/**
 * Ends the process at the second signal, or `limit` milliseconds after the first: what
 * the server still waits for then, such as a database that does not answer, is given up.
 * Returns a function that stops it as a signal does.
 */
export const install = (limit: () => number): () => void => {
  let stoppingSince: number | undefined
  const signalled = () => {
    if (stoppingSince === undefined) {
      stoppingSince = performance.now()
      setTimeout(giveUp, limit()).unref()
    } else if (performance.now() - stoppingSince > sameSignalMillis) process.exit(1)
  }
  process.on("SIGTERM", signalled)
  process.on("SIGINT", signalled)
  return () => {
    if (stoppingSince === undefined) process.emit("SIGTERM", "SIGTERM")
  }
}

const giveUp = () => {
  process.stderr.write(
    "The server stops without what it still waited for: the database, for example, does not answer.\n"
  )
  process.exit(0)
}
