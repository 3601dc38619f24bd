/**
 * The laws of `MeshStore`.
 */
import {
  type Device,
  type DeviceCloud,
  DeviceId,
  DeviceStore,
  firstCursors,
  type MeshNetwork,
  MeshStore,
  type NewMeshNetwork,
  type NewMeshNode,
  type NodeAdded,
  type Product,
  ProjectId,
  ProjectStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { randomBytes } from "node:crypto"
import { detached } from "./Detached.ts"
import { assertPages, epoch, insertDevices, insertProduct, insertProject, newDevice, unique } from "./Samples.ts"

const hexKey = () => randomBytes(16).toString("hex")

const newNetwork = ({ projectId }: Pick<Product, "projectId">): NewMeshNetwork => ({
  projectId,
  networkKey: hexKey(),
  appKey: hexKey(),
  ...firstCursors,
  createdAt: epoch,
  updatedAt: epoch
})

const insertNetwork = Effect.fnUntraced(function*(owner: Pick<Product, "projectId">) {
  const store = yield* MeshStore
  const draft = newNetwork(owner)
  assert.strictEqual(yield* store.insert(draft), "inserted")
  const network = Option.getOrThrow(yield* store.get(draft.projectId, draft.networkKey))
  assert.deepStrictEqual(network, { ...draft, networkId: network.networkId })
  return network
})

const prepare = Effect.fnUntraced(function*(count: number) {
  const product = yield* insertProduct
  const devices = yield* insertDevices(product, Array.from({ length: count }, () => newDevice()))
  return { product, devices, network: yield* insertNetwork(product) }
})

const node = ({ deviceId }: Device, fields: Partial<NewMeshNode> = {}): NewMeshNode => ({
  deviceId,
  nodeType: 1,
  meshAddr: undefined,
  at: epoch + 1,
  ...fields
})

const addressOf = (added: NodeAdded): number | string => "node" in added ? added.node.meshAddr : added._tag

const reread = ({ networkKey, projectId }: MeshNetwork) =>
  Effect.flatMap(MeshStore, (store) => Effect.map(store.get(projectId, networkKey), Option.getOrThrow))

const all = { page: 1, pageSize: 100 }

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores), { excludeTestServices: true })(`MeshStore on ${name}`, (it) => {
    it.effect("has one network of a key in a project, and shows it to no other", () =>
      Effect.gen(function*() {
        const store = yield* MeshStore
        const project = { projectId: (yield* insertProject).id }
        const other = { projectId: (yield* insertProject).id }
        const network = yield* insertNetwork(project)
        const { networkId: _, ...draft } = network
        assert.strictEqual(yield* store.insert({ ...draft, appKey: hexKey() }), "taken")
        assert.deepStrictEqual(yield* reread(network), network)
        assert.isTrue(Option.isNone(yield* store.get(other.projectId, network.networkKey)))
        assert.strictEqual(yield* store.insert({ ...draft, ...other }), "inserted")
        const nowhere = { projectId: ProjectId.make("missing") }
        assert.strictEqual(yield* store.insert({ ...draft, ...nowhere }), "no-project")
        assert.isTrue(Option.isNone(yield* store.get(nowhere.projectId, network.networkKey)))
        assert.isFalse(yield* store.remove(other.projectId, hexKey()))
        assert.isTrue(yield* store.remove(other.projectId, network.networkKey))
        assert.isFalse(yield* store.remove(other.projectId, network.networkKey))
        assert.deepStrictEqual(yield* reread(network), network)
        const later = yield* insertNetwork(project)
        assert.deepStrictEqual(yield* store.list(project.projectId, { page: 1, pageSize: 1 }), {
          items: [later],
          total: 2
        })
        assert.deepStrictEqual((yield* store.list(other.projectId, all)).items, [])
        const theirs = yield* insertNetwork(other)
        assert.deepStrictEqual(yield* store.list(other.projectId, all), { items: [theirs], total: 1 })
        assert.deepStrictEqual(yield* store.list(project.projectId, all), { items: [later, network], total: 2 })
      }))

    it.effect("places nodes where they ask to be, or next", () =>
      Effect.gen(function*() {
        const store = yield* MeshStore
        const { devices, network, product } = yield* prepare(5)
        const neighbour = yield* insertNetwork(product)
        const [first, second, third, gateway, late] = devices as [Device, Device, Device, Device, Device]
        const { networkId } = network
        const added = yield* store.addNode(networkId, node(first))
        assert.deepStrictEqual(added, {
          _tag: "Added",
          node: {
            deviceId: first.deviceId,
            productKey: first.productKey,
            deviceName: first.deviceName,
            meshAddr: 0x0100,
            nodeType: 1,
            createdAt: epoch + 1
          }
        })
        assert.strictEqual(addressOf(yield* store.addNode(networkId, node(second, { meshAddr: 0x0200 }))), 0x0200)
        assert.strictEqual(addressOf(yield* store.addNode(networkId, node(third, { meshAddr: 0x0200 }))), "Taken")
        assert.strictEqual(addressOf(yield* store.addNode(networkId, node(third))), 0x0201)
        assert.strictEqual(addressOf(yield* store.addNode(networkId, node(gateway, { nodeType: 2, at: epoch + 2 }))), 1)
        assert.deepStrictEqual(yield* reread(network), {
          ...network,
          unicastCursor: 0x0202,
          provisionerCursor: 2,
          updatedAt: epoch + 2
        })
        assert.deepStrictEqual(yield* reread(neighbour), neighbour)
        // A node stays as it is, whatever the repeated request asks for.
        const again = yield* store.addNode(networkId, node(first, { meshAddr: 0x0300, nodeType: 2 }))
        assert.deepStrictEqual(again, { ...added, _tag: "Exists" })
        assert.strictEqual(
          addressOf(yield* store.addNode(networkId, node({ ...late, deviceId: DeviceId.make(unique("missing")) }))),
          "NoDevice"
        )
        assert.strictEqual(addressOf(yield* store.addNode(networkId + 1_000_000, node(late))), "NoNetwork")
        const { items, total } = yield* store.nodes(networkId, all)
        assert.deepStrictEqual(
          [total, ...items.map(({ deviceId }) => deviceId)],
          [4, gateway.deviceId, third.deviceId, second.deviceId, first.deviceId]
        )
        yield* assertPages((page) => store.nodes(networkId, page), items)
        assert.deepStrictEqual(yield* store.gateways(networkId), [gateway.deviceId])
      }))

    it.effect("never gives an address twice, however many nodes are added at the same time", () =>
      Effect.gen(function*() {
        const store = yield* MeshStore
        const { devices, network: { networkId } } = yield* prepare(40)
        const added = yield* Effect.forEach(
          // Each device is added twice; every tenth asks for an address that another one wants too.
          [...devices, ...devices],
          (device, i) => store.addNode(networkId, node(device, i % 10 === 0 ? { meshAddr: 0x0105 } : {})),
          { concurrency: "unbounded" }
        )
        const { items } = yield* store.nodes(networkId, all)
        assert.strictEqual(new Set(items.map(({ meshAddr }) => meshAddr)).size, items.length)
        assert.strictEqual(added.filter(({ _tag }) => _tag === "Added").length, items.length)
        const nodeOf = new Map(items.map((node) => [node.deviceId, node]))
        for (const outcome of added) {
          if ("node" in outcome) assert.deepStrictEqual(outcome.node, nodeOf.get(outcome.node.deviceId))
          else assert.strictEqual(outcome._tag, "Taken")
        }
        assert.isAtLeast(items.length, 36)
      }))

    it.effect("takes no more nodes than there are addresses, and gives an address again that is free again", () =>
      Effect.gen(function*() {
        const store = yield* MeshStore
        const { devices, network: { networkId }, product } = yield* prepare(257)
        const gateways = devices.slice(0, 255)
        const addresses = yield* Effect.forEach(
          gateways,
          (device) => Effect.map(store.addNode(networkId, node(device, { nodeType: 2 })), addressOf)
        )
        assert.deepStrictEqual(addresses, gateways.map((_, i) => i + 1))
        const [late, later] = devices.slice(255) as [Device, Device]
        const add = (device: Device) => Effect.map(store.addNode(networkId, node(device, { nodeType: 2 })), addressOf)
        assert.strictEqual(yield* add(late), "Full")
        assert.isTrue(yield* store.removeNode(networkId, gateways[99]!.deviceId))
        assert.isFalse(yield* store.removeNode(networkId, gateways[99]!.deviceId))
        assert.strictEqual(yield* add(late), 100)
        assert.strictEqual(yield* add(later), "Full")
        yield* (yield* DeviceStore).remove(product.projectId, gateways[7]!.deviceId)
        assert.strictEqual(yield* add(later), 8)
        assert.strictEqual((yield* store.nodes(networkId, all)).total, 255)
      }))

    it.effect("forgets nodes with their network and their device, and networks with their project", () =>
      Effect.gen(function*() {
        const store = yield* MeshStore
        const { devices, network, product } = yield* prepare(2)
        const [kept, removed] = devices as [Device, Device]
        const second = yield* insertNetwork(product)
        for (const { networkId } of [network, second]) {
          yield* store.addNode(networkId, node(kept))
          yield* store.addNode(networkId, node(removed, { nodeType: 2 }))
        }
        yield* (yield* DeviceStore).remove(product.projectId, removed.deviceId)
        for (const { networkId } of [network, second]) {
          const { items } = yield* store.nodes(networkId, all)
          assert.deepStrictEqual(items.map(({ deviceId }) => deviceId), [kept.deviceId])
          assert.deepStrictEqual(yield* store.gateways(networkId), [])
        }
        assert.isTrue(yield* store.remove(product.projectId, network.networkKey))
        assert.strictEqual((yield* store.nodes(network.networkId, all)).total, 0)
        assert.strictEqual((yield* store.nodes(second.networkId, all)).total, 1)
        const project = yield* insertProject
        const doomed = yield* insertNetwork({ projectId: project.id })
        assert.strictEqual(yield* (yield* ProjectStore).remove(project.id), "removed")
        assert.isTrue(Option.isNone(yield* store.get(project.id, doomed.networkKey)))
      }))
  })
}
