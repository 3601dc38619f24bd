/**
 * Opens and ends add-sessions, in which a gateway looks for sub-devices, and
 * tells gateways of them (docs/protocol/gateways.md).
 */
import { Clock, Effect, Option } from "effect"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import type { DeviceId } from "../device/Device.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import * as Periodic from "../kernel/Periodic.ts"
import type { ProductKey } from "../product/Product.ts"
import { type AddSession, sessionMemoryMillis } from "./Topology.ts"
import { TopologyStore } from "./TopologyStore.ts"

/** Sessions that end in one transaction. */
const tickLimit = 1000

/** The products of a session as a gateway is told them: empty text stands for all. */
const toldProducts = ({ productKeys }: Pick<AddSession, "productKeys">): ReadonlyArray<ProductKey | ""> =>
  productKeys.length === 0 ? [""] : productKeys

/** Looks after the add-sessions of all gateways until the scope closes. */
export const make = Effect.gen(function*() {
  const store = yield* TopologyStore
  const sessions = yield* DeviceSessions
  const identifiers = yield* Identifiers

  /** The gateways that may have an open add-session: they are told of it when they connect. */
  let searching: ReadonlySet<DeviceId> = new Set()

  /** Tells a gateway to let sub-devices of these products join for `time` seconds; 0 ends that. */
  const permit = (gatewayId: DeviceId, productKeys: ReadonlyArray<ProductKey | "">, time: number) =>
    Effect.forEach(
      productKeys,
      (productKey) =>
        sessions.deliverAnywhere(gatewayId, { method: "thing.gateway.permit", params: { time, productKey } }),
      { discard: true }
    )

  /**
   * Opens a session of `timeout` seconds in place of an open one, tells the
   * gateway, and returns the session's id.
   */
  const open = Effect.fnUntraced(
    function*(
      { gatewayId, productKeys, projectId, timeout }: Pick<AddSession, "projectId" | "gatewayId" | "productKeys"> & {
        readonly timeout: number
      }
    ) {
      const startedAt = yield* Clock.currentTimeMillis
      const session: AddSession = {
        sessionId: yield* identifiers.deviceId,
        projectId,
        gatewayId,
        productKeys,
        startedAt,
        endsAt: startedAt + timeout * 1000
      }
      const replaced = yield* store.openSession(session)
      if (Option.isSome(replaced)) {
        const told = toldProducts(session)
        yield* permit(gatewayId, toldProducts(replaced.value).filter((productKey) => !told.includes(productKey)), 0)
      }
      searching = new Set(searching).add(gatewayId)
      yield* permit(gatewayId, toldProducts(session), timeout)
      return session.sessionId
    }
  )

  /** Ends the session and tells the gateway. Returns false if it is not open. */
  const close = Effect.fnUntraced(function*(session: AddSession) {
    const { gatewayId, sessionId } = session
    const hasEnded = yield* store.endSession(gatewayId, sessionId, yield* Clock.currentTimeMillis)
    if (hasEnded) yield* permit(gatewayId, toldProducts(session), 0)
    return hasEnded
  })

  /** Tells a gateway how many seconds its session has left; a session that has ended is passed over. */
  const permitRest = Effect.fnUntraced(function*(gatewayId: DeviceId) {
    const [session] = yield* store.openSessions(gatewayId)
    if (session === undefined) return
    const left = Math.ceil((session.endsAt - (yield* Clock.currentTimeMillis)) / 1000)
    if (left > 0) yield* permit(gatewayId, toldProducts(session), left)
  }, Effect.catch((error) => Effect.logWarning("A gateway could not be told of its add-session", error)))

  /** Ends sessions whose time is over, and reads which are open. */
  const tick = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const due = yield* store.endDue({ now, limit: tickLimit })
    const before = searching
    searching = new Set((yield* store.openSessions()).map(({ gatewayId }) => gatewayId))
    // A gateway may have connected here before this node knew of its session.
    const late = [...searching].filter((gatewayId) =>
      !before.has(gatewayId) && sessions.session(gatewayId) !== undefined
    )
    yield* Effect.forEach(late, permitRest, { discard: true })
    yield* Effect.forEach(due, (session) => permit(session.gatewayId, toldProducts(session), 0), { discard: true })
    yield* store.forgetSessions(now - sessionMemoryMillis)
  })

  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  yield* sessions.listen({
    attached: ({ connection: { device: { deviceId } } }) => {
      if (searching.has(deviceId)) runFork(permitRest(deviceId))
    }
  })
  yield* tick.pipe(
    Effect.catch((error) => Effect.logWarning("Add-sessions could not be looked after", error)),
    Periodic.looking
  )

  return { open, close }
})
