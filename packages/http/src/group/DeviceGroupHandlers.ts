/**
 * Handlers of the routes of device groups.
 */
import { type DeviceDetail, type DeviceGroup, DeviceGroups, DeviceId, type DeviceQuery } from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { snakeCase, toCamelCase } from "../SnakeCase.ts"
import type { DeviceGroupInfo, GroupDevice } from "./DeviceGroupApi.ts"

/** Implements the group `deviceGroups`. */
export const layer = group(
  Api,
  "deviceGroups",
  Effect.fnUntraced(function*(handlers) {
    const groups = yield* DeviceGroups
    return handlers.handleAll({
      createDeviceGroup: ({ payload }) =>
        CurrentPrincipal.use(({ projectId }) => respond(groups.create(projectId, inDomain(payload)), groupInfo)),
      listDeviceGroups: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) => respondPage(query, (page) => groups.list(projectId, page), groupInfo)),
      getDeviceGroup: ({ params: { group_id } }) =>
        CurrentPrincipal.use(({ projectId }) => respond(groups.get(projectId, group_id), groupInfo)),
      changeDeviceGroup: ({ params: { group_id }, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(groups.change(projectId, group_id, inDomain(payload)), groupInfo)
        ),
      deleteDeviceGroup: ({ params: { group_id } }) =>
        CurrentPrincipal.use(({ projectId }) => done(groups.remove(projectId, group_id))),
      listDevicesOfGroup: ({ params: { group_id }, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => groups.devices(projectId, group_id, page), groupDevice)
        ),
      addDevicesToGroup: ({ params: { group_id }, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(groups.add(projectId, group_id, deviceIds(payload)), (added) => ({ added }))
        ),
      removeDevicesFromGroup: ({ params: { group_id }, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(groups.take(projectId, group_id, deviceIds(payload)), (removed) => ({ removed }))
        ),
      listGroupsOfDevice: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(groups.ofDevice(projectId, params.device_id), (found) => ({ results: found.map(groupInfo) }))
        )
    })
  })
)

type Query = NonNullable<(typeof DeviceGroupInfo.Type)["query"]>

const inDomain = <Body extends { readonly query?: Query | undefined }>({ query, ...body }: Body) => ({
  ...body,
  query: query === undefined ? undefined : toCamelCase(query)
})

const deviceIds = ({ device_ids }: { readonly device_ids: ReadonlyArray<string> }) =>
  device_ids.map((deviceId) => DeviceId.make(deviceId))

/** The given conditions alone. */
const queryInfo = (query: DeviceQuery): Query =>
  Object.fromEntries(
    Object.entries(query).filter(([, value]) => value !== undefined).map(([name, value]) => [snakeCase(name), value])
  )

const groupInfo = (group: DeviceGroup): typeof DeviceGroupInfo.Type => ({
  group_id: group.groupId,
  name: group.name,
  desc: group.desc,
  type: group.query === null ? "static" : "dynamic",
  query: group.query === null ? null : queryInfo(group.query),
  created_at: dateText(group.createdAt),
  updated_at: dateText(group.updatedAt)
})

const groupDevice = ({ device }: DeviceDetail): typeof GroupDevice.Type => ({
  device_id: device.deviceId,
  product_key: device.productKey,
  device_name: device.deviceName,
  nickname: device.nickname,
  status: device.status
})
