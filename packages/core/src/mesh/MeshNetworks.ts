/**
 * Manages mesh networks and their nodes (docs/api/mesh.md).
 */
import { Clock, Context, Effect, Layer } from "effect"
import { DeviceDisabled, type DeviceId, DeviceNotFound, type DeviceReference } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import { type ProjectId, ProjectNotFound } from "../project/Project.ts"
import { WrongSignature } from "../provisioning/ProofFailures.ts"
import { equalInConstantTime, Mac } from "../kernel/Mac.ts"
import { fieldsText } from "../provisioning/Signature.ts"
import { rightSecret } from "../kernel/RotatedSecret.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { NotAGateway } from "../gateway/Topology.ts"
import {
  addressMisfit,
  firstCursors,
  MeshAddressTaken,
  type MeshNetwork,
  MeshNetworkDraft,
  MeshNetworkFull,
  MeshNetworkNotFound,
  type MeshNode,
  MeshNodeDraft,
  MeshNodeExists,
  MeshNodeNotFound,
  MeshRawData,
  meshRawMethod,
  NetworkKeyTaken,
  NoGatewayOnline
} from "./MeshNetwork.ts"
import { MeshStore } from "./MeshStore.ts"

type Missing = MeshNetworkNotFound | StoreError

/**
 * Every member takes network keys in either case. A network that the project does
 * not have fails with `MeshNetworkNotFound`.
 */
export class MeshNetworks extends Context.Service<MeshNetworks, {
  /** Creates a network and returns its keys; makes the keys that the draft leaves out. */
  readonly create: (
    projectId: ProjectId,
    draft: MeshNetworkDraft
  ) => Effect.Effect<
    Pick<MeshNetwork, "networkKey" | "appKey">,
    InvalidInput | ProjectNotFound | NetworkKeyTaken | StoreError
  >
  /** Returns a network with its cursors. */
  readonly get: (projectId: ProjectId, networkKey: string) => Effect.Effect<MeshNetwork, Missing>
  /** Returns the networks of the project, newest first. */
  readonly list: (
    projectId: ProjectId,
    page: PageRequest
  ) => Effect.Effect<Page<MeshNetwork>, InvalidInput | StoreError>
  /** Deletes a network with its nodes. */
  readonly remove: (projectId: ProjectId, networkKey: string) => Effect.Effect<void, Missing>
  /**
   * Adds a device as a node and returns the node with its address. Fails with
   * `NotAGateway` if a node of type 2 is a device of another product than one of
   * gateways, with `MeshNodeExists` if the device already is a node of the
   * network, and with `InvalidInput` if the address is out of range.
   */
  readonly addNode: (projectId: ProjectId, networkKey: string, draft: MeshNodeDraft) => Effect.Effect<
    MeshNode,
    | InvalidInput
    | DeviceNotFound
    | DeviceDisabled
    | WrongSignature
    | NotAGateway
    | MeshNodeExists
    | MeshAddressTaken
    | MeshNetworkFull
    | Missing
  >
  /** Removes a node. */
  readonly removeNode: (
    projectId: ProjectId,
    networkKey: string,
    device: DeviceReference
  ) => Effect.Effect<void, DeviceNotFound | MeshNodeNotFound | Missing>
  /** Returns the nodes of a network, newest first. */
  readonly nodes: (
    projectId: ProjectId,
    networkKey: string,
    page: PageRequest
  ) => Effect.Effect<Page<MeshNode>, InvalidInput | Missing>
  /** Returns the devices that are gateways of a network, at most 255. */
  readonly gateways: (projectId: ProjectId, networkKey: string) => Effect.Effect<ReadonlyArray<DeviceId>, Missing>
  /** Sends bytes once to each connected gateway of a network. Fails with `NoGatewayOnline` if none is connected. */
  readonly sendRaw: (
    projectId: ProjectId,
    networkKey: string,
    input: MeshRawData
  ) => Effect.Effect<void, InvalidInput | NoGatewayOnline | Missing>
}>()("@device-cloud/core/mesh/MeshNetworks") {
  static readonly layer: Layer.Layer<MeshNetworks, never, MeshStore | Devices | DeviceSessions | Identifiers | Mac> =
    Layer.effect(MeshNetworks, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(MeshNetworkDraft)
const decodeNode = decodeInput(MeshNodeDraft)
const decodeRawData = decodeInput(MeshRawData)

const make = Effect.gen(function*() {
  const store = yield* MeshStore
  const devices = yield* Devices
  const sessions = yield* DeviceSessions
  const identifiers = yield* Identifiers
  const mac = yield* Mac

  const create = Effect.fn("MeshNetworks.create")(function*(projectId: ProjectId, input: MeshNetworkDraft) {
    const { appKey = "", networkKey = "" } = yield* decodeDraft(input)
    const at = yield* Clock.currentTimeMillis
    const keys = {
      networkKey: networkKey.toLowerCase() || (yield* identifiers.hexKey),
      appKey: appKey.toLowerCase() || (yield* identifiers.hexKey)
    }
    switch (yield* store.insert({ projectId, ...keys, ...firstCursors, createdAt: at, updatedAt: at })) {
      case "inserted":
        return keys
      case "taken":
        return yield* new NetworkKeyTaken({ networkKey: keys.networkKey })
      case "no-project":
        return yield* new ProjectNotFound({ projectId })
    }
  })

  const get = Effect.fn("MeshNetworks.get")(function*(projectId: ProjectId, networkKey: string) {
    const found = yield* store.get(projectId, networkKey.toLowerCase())
    return yield* Effect.fromOption(found, () => new MeshNetworkNotFound({ networkKey }))
  })

  const remove = Effect.fn("MeshNetworks.remove")(function*(projectId: ProjectId, networkKey: string) {
    const isRemoved = yield* store.remove(projectId, networkKey.toLowerCase())
    if (!isRemoved) return yield* new MeshNetworkNotFound({ networkKey })
  })

  /** Returns the device if its signature is right, it is enabled, and it may be a node of this type. */
  const authenticate = Effect.fnUntraced(function*(projectId: ProjectId, draft: MeshNodeDraft) {
    const { deviceName, productKey, sign, signMethod } = draft
    const { device, product } = yield* devices.get(projectId, { productKey, deviceName })
    const text = fieldsText({ deviceName, productKey })
    const isRight = (secret: string) => equalInConstantTime(mac.sign(signMethod, secret, text), sign.toLowerCase())
    const now = yield* Clock.currentTimeMillis
    if (rightSecret(device.deviceSecret, device.previousSecret, now, isRight) === undefined) {
      return yield* new WrongSignature({ productKey, deviceName })
    }
    if (!device.enabled) return yield* new DeviceDisabled({ productKey, deviceName })
    if (draft.nodeType === 2 && product.nodeType !== "gateway") {
      return yield* new NotAGateway({ deviceId: device.deviceId })
    }
    return device
  })

  const addNode = Effect.fn("MeshNetworks.addNode")(
    function*(projectId: ProjectId, networkKey: string, input: MeshNodeDraft) {
      const { networkId } = yield* get(projectId, networkKey)
      const draft = yield* decodeNode(input)
      const { nodeType } = draft
      const meshAddr = draft.meshAddr === 0 ? undefined : draft.meshAddr
      const misfit = meshAddr === undefined ? undefined : addressMisfit(nodeType, meshAddr)
      if (misfit !== undefined) {
        return yield* new InvalidInput({ issues: [{ path: ["meshAddr"], message: misfit }] })
      }
      const { deviceId, deviceName } = yield* authenticate(projectId, draft)
      const at = yield* Clock.currentTimeMillis
      const added = yield* store.addNode(networkId, { deviceId, nodeType, meshAddr, at })
      switch (added._tag) {
        case "Added":
          return added.node
        case "Exists": {
          const { node } = added
          return yield* new MeshNodeExists({
            networkKey,
            deviceName,
            meshAddr: node.meshAddr,
            nodeType: node.nodeType
          })
        }
        case "Taken":
          return yield* new MeshAddressTaken({ meshAddr: meshAddr! })
        case "Full":
          return yield* new MeshNetworkFull({ networkKey, nodeType })
        case "NoNetwork":
          return yield* new MeshNetworkNotFound({ networkKey })
        case "NoDevice":
          return yield* DeviceNotFound.of({ deviceId })
      }
    }
  )

  const removeNode = Effect.fn("MeshNetworks.removeNode")(
    function*(projectId: ProjectId, networkKey: string, reference: DeviceReference) {
      const { networkId } = yield* get(projectId, networkKey)
      const deviceId = "deviceId" in reference
        ? reference.deviceId
        : (yield* devices.get(projectId, reference)).device.deviceId
      const isRemoved = yield* store.removeNode(networkId, deviceId)
      if (!isRemoved) return yield* new MeshNodeNotFound({ networkKey, deviceId })
    }
  )

  const nodes = Effect.fn("MeshNetworks.nodes")(
    function*(projectId: ProjectId, networkKey: string, page: PageRequest) {
      const { networkId } = yield* get(projectId, networkKey)
      return yield* paged(store.nodes)(networkId, page)
    }
  )

  const gateways = Effect.fn("MeshNetworks.gateways")(function*(projectId: ProjectId, networkKey: string) {
    const { networkId } = yield* get(projectId, networkKey)
    return yield* store.gateways(networkId)
  })

  const sendRaw = Effect.fn("MeshNetworks.sendRaw")(
    function*(projectId: ProjectId, networkKey: string, input: MeshRawData) {
      const network = yield* get(projectId, networkKey)
      const { rawData } = yield* decodeRawData(input)
      const connected = yield* sessions.connected(yield* store.gateways(network.networkId))
      if (connected.length === 0) return yield* new NoGatewayOnline({ networkKey })
      const message = { method: meshRawMethod, params: { network_key: network.networkKey, raw_data: rawData } }
      yield* Effect.forEach(connected, (deviceId) => sessions.deliverAnywhere(deviceId, message), {
        concurrency: "unbounded",
        discard: true
      })
    }
  )

  return MeshNetworks.of({
    create,
    get,
    list: paged(store.list),
    remove,
    addNode,
    removeNode,
    nodes,
    gateways,
    sendRaw
  })
})
