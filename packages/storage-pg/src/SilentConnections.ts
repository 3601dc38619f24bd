/**
 * Connections that end when the database has not answered for long. When its machine goes without a word, the
 * system keeps a connection with a statement under way for about 15 minutes, and the driver waits as long
 * (docs/decisions/0138-databases-that-go-without-a-word.md).
 */
import { Duration } from "effect"
import { connect, type IpcNetConnectOpts, type Socket, type TcpNetConnectOpts } from "node:net"

/** How often somebody looks at a connection, milliseconds. */
const lookEvery = 5000

/** A connection that the system has not heard from for so long is probed, milliseconds. */
const keepAliveInitialDelay = 30_000

/** Where the driver would connect to. */
const placeOf = ({ hostname, port, searchParams }: URL): IpcNetConnectOpts | TcpNetConnectOpts => {
  const host = searchParams.get("host") ?? (decodeURIComponent(hostname).replace(/^\[|\]$/g, "") || "localhost")
  const number = Number(searchParams.get("port") ?? (port || 5432))
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${number}` } : { host, port: number }
}

/**
 * Connects to the database at `url` (`postgres://…`). The connection ends with an error when nothing has come for
 * `patience`, whether it waits for an answer or is idle: only statements that take less time belong on it. Looks count,
 * and not the time: a process that has stood still has not looked, and the answer may be there.
 */
export const connectTo = (url: string, patience: Duration.Input) => (): Socket => {
  const socket = connect({ ...placeOf(new URL(url)), noDelay: true, keepAlive: true, keepAliveInitialDelay })
  const looks = Duration.toMillis(patience) / lookEvery
  let read = 0
  let written = 0
  let silent = 0
  let isWaiting = false
  // A timer of Node.js and not a fiber: the driver calls this outside of Effect.
  const timer = setInterval(() => {
    if (socket.bytesRead !== read) {
      read = socket.bytesRead
      written = socket.bytesWritten
      silent = 0
      isWaiting = false
    } else if (!isWaiting && socket.bytesWritten !== written) {
      // The first statement since then.
      silent = 0
      isWaiting = true
    } else if (++silent >= looks) {
      socket.destroy(new Error("The database does not answer"))
    }
  }, lookEvery).unref()
  return socket.once("close", () => clearInterval(timer))
}
