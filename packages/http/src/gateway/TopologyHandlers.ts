/**
 * Handlers of the routes of gateways and their sub-devices.
 */
import { type AddSession, type DeviceIdentity, InvalidInput, Topologies } from "@device-cloud/core"
import { Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { OpenAddSession, SubDevice } from "./TopologyApi.ts"

/** Implements the group `topology`. */
export const layer = group(
  Api,
  "topology",
  Effect.fnUntraced(function*(handlers) {
    const topologies = yield* Topologies
    return handlers.handleAll({
      changeTopology: ({ params, payload }) =>
        Effect.gen(function*() {
          const { projectId } = yield* CurrentPrincipal
          if (payload.action === "sub.add.start") {
            return yield* respond(
              topologies.startAdding(projectId, params.device_id, toCamelCase(payload.params ?? {})),
              (session_id) => ({ session_id })
            )
          }
          return yield* done(Effect.flatMap(
            required(payload.session_id),
            (sessionId) => topologies.stopAdding(projectId, params.device_id, sessionId)
          ))
        }),
      listTopology: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(topologies.subDevices(projectId, params.device_id), subDevices)
        ),
      readGateway: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            topologies.gatewayOf(projectId, params.device_id),
            (gateway) => ({ gateway: gateway === undefined ? null : subDevice(gateway) })
          )
        ),
      readAddSession: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            topologies.openSession(projectId, params.device_id),
            (session) => ({ session: session === undefined ? null : openSession(session) })
          )
        ),
      listAddedSubDevices: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(topologies.added(projectId, params.device_id, query.session_id), subDevices)
        ),
      addSubDevices: ({ params, payload, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            topologies.add(projectId, params.device_id, query.session_id, payload.params.map(toCamelCase)),
            (added) => added.map(subDevice)
          )
        ),
      removeSubDevices: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(topologies.remove(projectId, params.device_id, payload.params.map(toCamelCase)))
        )
    })
  })
)

const subDevice = ({ deviceId, deviceName, productKey }: DeviceIdentity): typeof SubDevice.Type => ({
  device_name: deviceName,
  product_key: productKey,
  device_id: deviceId
})

const openSession = ({ endsAt, productKeys, sessionId, startedAt }: AddSession): typeof OpenAddSession.Type => ({
  session_id: sessionId,
  product_keys: productKeys,
  started_at: dateText(startedAt),
  ends_at: dateText(endsAt)
})

const subDevices = (devices: ReadonlyArray<DeviceIdentity>) => ({ sub_devices: devices.map(subDevice) })

/** Fails with `InvalidInput` when no add-session is named. */
const required = (sessionId: string | undefined) =>
  sessionId === undefined
    ? Effect.fail(
      new InvalidInput({ issues: [{ path: ["session_id"], message: "Expected the add-session that is to end" }] })
    )
    : Effect.succeed(sessionId)
