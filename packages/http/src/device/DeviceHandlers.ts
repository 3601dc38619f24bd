/**
 * Handlers of the routes of devices and their shadows.
 */
import {
  type ConnectRefusal,
  ConnectRefusals,
  delta,
  type Device,
  type DeviceDetail,
  Devices,
  type DeviceStatus,
  type PresenceEntry,
  PresenceHistory,
  type Shadow,
  shadowDocument,
  Shadows,
  type ShadowSide,
  timeZoneTag,
  Topologies
} from "@device-cloud/core"
import { Clock, Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import type { Caller } from "../middleware/Caller.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { withoutGateway } from "../events/OwnEvents.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { DeviceInfo, DeviceRecord, PresenceChange, ThingShadow } from "./DeviceApi.ts"

/** Implements the group `devices`. */
export const layer = group(
  Api,
  "devices",
  Effect.fnUntraced(function*(handlers) {
    const devices = yield* Devices
    const shadows = yield* Shadows
    const topologies = yield* Topologies
    const refusals = yield* ConnectRefusals
    const presence = yield* PresenceHistory

    const count = (details: ReadonlyArray<DeviceDetail>) =>
      Effect.map(
        topologies.amounts(details),
        (amounts) => details.map((detail): Counted => ({ detail, amount: amounts.get(detail.device.deviceId) ?? 0 }))
      )
    const countOne = (detail: DeviceDetail) => Effect.map(count([detail]), ([counted]) => counted!)

    const actions = {
      enable: devices.enable,
      disble: devices.disable,
      disable: devices.disable,
      bind: devices.bind,
      unbind: devices.unbind
    }
    return handlers.handleAll({
      createDevice: ({ params, payload }) =>
        CurrentPrincipal.use((caller) =>
          respond(
            devices.create(caller.projectId, params.product_key, toCamelCase(payload ?? {})),
            deviceRecord(caller)
          )
        ),
      listDevices: ({ query }) =>
        CurrentPrincipal.use((caller) => {
          const filter = {
            productKey: query.product_key,
            batchId: query.batch_id,
            enabled: query.enabled_status === undefined ? undefined : query.enabled_status === "enable",
            status: query.status,
            tags: query.tag === undefined ? undefined : Object.fromEntries([tagOf(query.tag)]),
            keyword: query.keyword
          }
          return respondPage(query, (page) =>
            Effect.flatMap(devices.list(caller.projectId, filter, page), ({ items, total }) =>
              Effect.map(count(items), (counted) => ({ items: counted, total }))), deviceInfo(caller))
        }),
      getDevice: ({ params }) =>
        CurrentPrincipal.use((caller) =>
          respond(
            Effect.flatMap(devices.get(caller.projectId, { deviceId: params.device_id }), countOne),
            oneDevice(caller)
          )
        ),
      getDeviceByName: ({ params }) =>
        CurrentPrincipal.use((caller) =>
          respond(
            Effect.flatMap(
              devices.get(caller.projectId, { productKey: params.product_key, deviceName: params.device_name }),
              countOne
            ),
            oneDevice(caller)
          )
        ),
      getDeviceStatus: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(devices.get(projectId, { deviceId: params.device_id }), ({ device }) => ({ status: device.status }))
        ),
      listConnectRefusals: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            refusals.ofDevice(projectId, params.device_id),
            (found) => ({ results: found.map(refusalRecord) })
          )
        ),
      readPresence: ({ params, query: { before, limit = 100 } }) =>
        CurrentPrincipal.use(({ projectId, scopes }) =>
          respond(presence.read(projectId, params.device_id, { before, limit }), ({ entries, since, status }) => ({
            status,
            since: dateText(since),
            cursor: entries.length < limit ? "" : entries.at(-1)!.id,
            results: entries.map(({ event, id }) =>
              presenceChange({ id, event: scopes.products === undefined ? event : withoutGateway(event) })
            )
          }))
        ),
      changeDevice: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => done(devices.change(projectId, params.device_id, payload))),
      changeDeviceStatus: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => done(actions[payload.action](projectId, params.device_id))),
      deleteDevice: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(devices.remove(projectId, params.device_id))),
      getDeviceProperties: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            shadows.get(projectId, params.device_id),
            ({ shadow }) => ({ properties: shadowValues(shadow.reported) })
          )
        ),
      getDeviceShadow: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(Effect.zip(shadows.get(projectId, params.device_id), Clock.currentTimeMillis), ([found, now]) => ({
            thing_shadow: thingShadow(found.device.id, found.device.status, found.shadow, now)
          }))
        ),
      updateDeviceShadow: ({ params, payload: { state, version } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(shadows.desire(projectId, params.device_id, state.desired, version))
        ),
      removeReportedProperty: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(shadows.removeReported(projectId, params.device_id, params.property_id))
        ),
      rotateDeviceSecret: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            devices.rotateSecret(projectId, params.device_id, payload ?? {}),
            ({ deviceSecret, previousSecret }) => ({
              device_secret: deviceSecret,
              previous_valid_until: dateText(previousSecret?.until ?? null)
            })
          )
        ),
      setDeviceDiagnosis: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(devices.setDiagnosis(projectId, params.device_id, payload.enabled))
        ),
      setDeviceTags: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => done(devices.setTags(projectId, params.device_id, payload.tags)))
    })
  })
)

const deviceRecord = (caller: Caller) => (device: Device): typeof DeviceRecord.Type => ({
  device_id: device.deviceId,
  product_key: device.productKey,
  device_name: device.deviceName,
  device_secret: caller.reveal(device.deviceSecret),
  nickname: device.nickname,
  status: device.status,
  created_at: dateText(device.createdAt),
  register_at: dateText(device.activatedAt),
  updated_at: dateText(device.updatedAt),
  batch_id: device.batchId,
  enabled_status: device.enabled ? "enable" : "disable",
  ip: device.ip,
  firmware_version: device.firmwareVersion
})

const refusalRecord = ({ address, at, firstAt, reason, returnCode, times }: ConnectRefusal) => ({
  time: dateText(at),
  first_time: dateText(firstAt),
  times,
  address,
  reason,
  return_code: returnCode
})

const presenceChange = ({ event, id }: PresenceEntry): typeof PresenceChange.Type => {
  const { at, link } = event
  const [kind, version, reason] = event._tag === "ConnectionReplaced"
    ? ["takeover" as const, null, ""]
    : [event.status, event.version, event.reason ?? ""]
  return {
    entry_id: id,
    time: dateText(at),
    kind,
    version,
    address: link?.address ?? "",
    transport: link?.transport ?? "",
    node: link?.nodeId ?? "",
    gateway: link?.gateway === undefined
      ? null
      : { product_key: link.gateway.productKey, device_name: link.gateway.deviceName },
    reason
  }
}

/** A device with the number of its sub-devices. */
interface Counted {
  readonly detail: DeviceDetail
  readonly amount: number
}

const deviceInfo = (caller: Caller) => ({ amount, detail: { device, product } }: Counted): typeof DeviceInfo.Type =>
  // A spread of this size makes an object that is slow to build and to read.
  Object.assign(deviceRecord(caller)(device), {
    product_secret: caller.reveal(product.productSecret),
    product_name: product.name,
    product_id: product.id,
    node_type: product.nodeType,
    protocol_type: product.protocolType,
    validate_type: product.validateType,
    data_format: product.dataFormat,
    auth_type: product.authType,
    device_type: product.deviceType,
    time_zone: device.tags[timeZoneTag] ?? device.timeZone,
    platform: product.platform,
    iot_platform: product.platform,
    platform_name: product.platformName,
    data_source: product.dataSource,
    diagnosis_enabled: device.diagnosisEnabled,
    access_key: "",
    cloud_gtw_mqtt_param: device.cloudGateway === null ? null : {
      clientid: device.cloudGateway.clientId,
      username: device.cloudGateway.username,
      password: caller.reveal(device.cloudGateway.password)
    },
    cloud_gtw_device_uuid: device.cloudGateway?.deviceUuid ?? "",
    topics: [],
    sub_amount: amount,
    is_mocker: false,
    bound: device.bound,
    mac: device.mac ?? "",
    tags: device.tags
  })

/** From `key:value`. */
const tagOf = (text: string): readonly [string, string] => {
  const colon = text.indexOf(":")
  return [text.slice(0, colon), text.slice(colon + 1)]
}

const oneDevice = (caller: Caller) => (counted: Counted) => ({ device_info: deviceInfo(caller)(counted) })

const seconds = (millis: number): number => Math.floor(millis / 1000)

const shadowValues = (side: ShadowSide) =>
  Object.fromEntries(Object.entries(side).map(([property, { value }]) => [property, value]))

const thingShadow = (id: number, status: DeviceStatus, shadow: Shadow, now: number): typeof ThingShadow.Type => ({
  ...shadowDocument(shadow),
  id,
  timestamp: seconds(shadow.updatedAt ?? 0),
  status,
  version: shadow.version,
  delta: shadowValues(delta(shadow, now))
})
