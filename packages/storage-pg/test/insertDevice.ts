import {
  DeviceId,
  DeviceName,
  DeviceStore,
  ProductKey,
  ProductStore,
  ProjectId,
  ProjectStore
} from "@device-cloud/core"
import { Effect } from "effect"

const epoch = Date.UTC(2026, 0, 1)

/** A device of a project and a product of its own. */
export const insertDevice = Effect.gen(function*() {
  const projectId = ProjectId.make("nodes")
  yield* (yield* ProjectStore).insert({ id: projectId, name: "Nodes", createdAt: epoch })
  const { productKey } = yield* (yield* ProductStore).insert({
    projectId,
    productKey: ProductKey.make("nodes"),
    productSecret: "productsecret016",
    name: "Sensor",
    description: "",
    photoUrl: "",
    deviceType: "",
    nodeType: "direct",
    networkType: "wifi",
    protocolType: "",
    validateType: "none",
    dataFormat: "json",
    authType: "secret",
    dataSource: 0,
    platform: 0,
    platformName: "",
    dynamicRegister: false,
    status: "developing",
    createdAt: epoch,
    updatedAt: epoch
  })
  const deviceId = DeviceId.make("device")
  yield* (yield* DeviceStore).insertMany(projectId, productKey, [{
    deviceId,
    deviceName: DeviceName.make("device"),
    deviceSecret: "0123456789abcdef0123456789abcdef",
    nickname: "",
    batchId: 0,
    cloudGateway: null,
    createdAt: epoch
  }])
  return deviceId
})
