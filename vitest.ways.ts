/**
 * Ways to a server over loopback that fall silent without a word to either end, as a network does, or a machine that
 * loses its power.
 */
import { Effect } from "effect"
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

/** A way to the server at `destination`, under a URL of its own. */
export const wayTo = Effect.fnUntraced(function*(destination: string) {
  const there = new URL(destination)
  const sockets = new Set<Socket>()
  let isCut = false
  const way = createServer((near) => {
    sockets.add(near.on("error", () => {}))
    if (isCut) return
    const far = connect(Number(there.port), there.hostname).on("error", () => {})
    sockets.add(far)
    near.pipe(far).pipe(near)
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(way.listen(0, "127.0.0.1"), "listening")),
    () =>
      Effect.sync(() => {
        way.close()
        for (const socket of sockets) socket.destroy()
      })
  )
  const here = new URL(destination)
  here.hostname = "127.0.0.1"
  here.port = String((way.address() as AddressInfo).port)
  /** Nothing more goes over the connections that there are. */
  const silence = Effect.sync(() => {
    for (const socket of sockets) socket.unpipe().pause()
  })
  return {
    url: here.href,
    silence,
    /** Nothing more goes, over new connections either. */
    cut: Effect.andThen(
      Effect.sync(() => {
        isCut = true
      }),
      silence
    )
  }
})
