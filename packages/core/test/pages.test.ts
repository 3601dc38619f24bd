import {
  AccessKeys,
  Batches,
  BulkCommands,
  Commands,
  Configurations,
  defaultProjectId,
  DeviceGroups,
  Devices,
  Firmwares,
  type InvalidInput,
  Jobs,
  MeshNetworks,
  type Page,
  type PageRequest,
  Products,
  Projects,
  Scenes,
  Subscriptions
} from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"

const outOfBounds: ReadonlyArray<readonly [PageRequest, string]> = [
  [{ page: 0, pageSize: 10 }, "page"],
  [{ page: -1, pageSize: 10 }, "page"],
  [{ page: 1.5, pageSize: 10 }, "page"],
  [{ page: NaN, pageSize: 10 }, "page"],
  [{ page: 2 ** 31, pageSize: 10 }, "page"],
  [{ page: 1, pageSize: 0 }, "pageSize"],
  [{ page: 1, pageSize: 101 }, "pageSize"],
  [{ page: 1, pageSize: 1.5 }, "pageSize"],
  [{ page: 1, pageSize: Infinity }, "pageSize"],
  [{ page: 1 } as PageRequest, "pageSize"]
]

layer(TestCloud.layer)("lists", (it) => {
  it.effect("refuse a page that is out of bounds, and say which field is", () =>
    Effect.gen(function*() {
      const { deviceId, productKey } = yield* (yield* TestCloud).createDevice()
      const accessKeys = yield* AccessKeys
      const batches = yield* Batches
      const bulkCommands = yield* BulkCommands
      const commands = yield* Commands
      const configurations = yield* Configurations
      const deviceGroups = yield* DeviceGroups
      const devices = yield* Devices
      const firmwares = yield* Firmwares
      const jobs = yield* Jobs
      const meshNetworks = yield* MeshNetworks
      const products = yield* Products
      const projects = yield* Projects
      const scenes = yield* Scenes
      const subscriptions = yield* Subscriptions
      const group = yield* deviceGroups.create(defaultProjectId, { name: `Of ${deviceId}` })
      const lists: ReadonlyArray<(page: PageRequest) => Effect.Effect<Page<unknown>, unknown>> = [
        (page) => accessKeys.list(defaultProjectId, page),
        (page) => batches.list(defaultProjectId, productKey, page),
        (page) => bulkCommands.list(defaultProjectId, page),
        (page) => commands.list(defaultProjectId, deviceId, page),
        (page) => configurations.progress(defaultProjectId, productKey, page),
        (page) => deviceGroups.list(defaultProjectId, page),
        (page) => deviceGroups.devices(defaultProjectId, group.groupId, page),
        (page) => devices.list(defaultProjectId, {}, page),
        (page) => firmwares.list(defaultProjectId, {}, page),
        (page) => jobs.list(defaultProjectId, page),
        (page) => meshNetworks.list(defaultProjectId, page),
        (page) => products.list(defaultProjectId, page),
        (page) => projects.list(page),
        (page) => scenes.list(defaultProjectId, {}, page),
        (page) => subscriptions.list(defaultProjectId, page)
      ]
      for (const list of lists) {
        for (const [page, field] of outOfBounds) {
          const { _tag, issues } = (yield* Effect.flip(list(page))) as InvalidInput
          assert.strictEqual(_tag, "InvalidInput")
          assert.deepStrictEqual([...new Set(issues.flatMap(({ path }) => path))], [field])
        }
        yield* list({ page: 2 ** 31 - 1, pageSize: 100 })
      }
    }))
})
