/**
 * Asks something of many devices with one call.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { defaultTtlSeconds } from "../command/Command.ts"
import { Commands } from "../command/Commands.ts"
import { unknownDevices } from "../device/Device.ts"
import { DeviceGroups, filterOf } from "../group/DeviceGroups.ts"
import type { DeviceGroupNotFound } from "../group/DeviceGroup.ts"
import { decodeInput, type InvalidInput } from "../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey, ProductNotFound } from "../product/Product.ts"
import { Products } from "../product/Products.ts"
import type { ProjectId } from "../project/Project.ts"
import type { InvalidValues } from "../thing-model/InvalidValues.ts"
import type { ElementNotFound } from "../thing-model/ThingModel.ts"
import {
  type BulkCommand,
  BulkCommandCancelled,
  BulkCommandDraft,
  BulkCommandNotFound,
  type BulkCounts,
  type BulkDevice,
  type BulkDeviceState,
  BulkScopeUnfit,
  TooManyBulkCommands
} from "./BulkCommand.ts"
import { BulkCommandStore, type BulkScope } from "./BulkCommandStore.ts"

export class BulkCommands extends Context.Service<BulkCommands, {
  /**
   * Stores the bulk command for the devices that its scope has now, 1 to 50,000,
   * and returns it at once; a node asks them in the background. If all of them are
   * of one product that the draft names, itself or by the query of its group, the
   * call is checked against the product first; otherwise each device is checked
   * when its turn comes. Fails with `InvalidInput` if the project has not all
   * devices that the draft names.
   */
  readonly create: (
    projectId: ProjectId,
    draft: BulkCommandDraft
  ) => Effect.Effect<
    BulkCommand,
    | InvalidInput
    | InvalidValues
    | ElementNotFound
    | ProductNotFound
    | DeviceGroupNotFound
    | BulkScopeUnfit
    | TooManyBulkCommands
    | StoreError
  >
  /** Returns the bulk command, and how many of its devices are in each state. */
  readonly get: (
    projectId: ProjectId,
    bulkId: number
  ) => Effect.Effect<
    { readonly bulk: BulkCommand; readonly counts: BulkCounts },
    BulkCommandNotFound | StoreError
  >
  /** Returns a page of the bulk commands of the project. */
  readonly list: (
    projectId: ProjectId,
    page: PageRequest
  ) => Effect.Effect<Page<BulkCommand>, InvalidInput | StoreError>
  /** Returns a page of the devices of the bulk command, those in `state` or all, in their order. */
  readonly devices: (
    projectId: ProjectId,
    bulkId: number,
    state: BulkDeviceState | undefined,
    page: PageRequest
  ) => Effect.Effect<Page<BulkDevice>, InvalidInput | BulkCommandNotFound | StoreError>
  /**
   * Cancels the bulk command: devices that have not been asked never are, but for
   * at most 250 whose turn it is, and in the background the commands that are still
   * queued are cancelled. Commands that devices have got go on. Fails with `BulkCommandCancelled` if it is cancelled already.
   */
  readonly cancel: (
    projectId: ProjectId,
    bulkId: number
  ) => Effect.Effect<void, BulkCommandNotFound | BulkCommandCancelled | StoreError>
}>()("@device-cloud/core/bulk/BulkCommands") {
  static readonly layer: Layer.Layer<
    BulkCommands,
    never,
    BulkCommandStore | Commands | DeviceGroups | Products
  > = Layer.effect(BulkCommands, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(BulkCommandDraft)

const make = Effect.gen(function*() {
  const store = yield* BulkCommandStore
  const commands = yield* Commands
  const groups = yield* DeviceGroups
  const products = yield* Products

  /** The devices of the scope, and the product that all of them are of, if the scope says so. */
  const scopeOf = Effect.fnUntraced(function*(
    projectId: ProjectId,
    { deviceIds, groupId, productKey }: BulkCommandDraft
  ): Effect.fn.Return<
    { readonly scope: BulkScope; readonly productKey?: ProductKey | undefined },
    ProductNotFound | DeviceGroupNotFound | StoreError
  > {
    if (deviceIds !== undefined) return { scope: { _tag: "Named", deviceIds } }
    if (groupId !== undefined) {
      const filter = filterOf(yield* groups.get(projectId, groupId))
      return { scope: { _tag: "Matching", filter }, productKey: filter.productKey }
    }
    yield* products.get(projectId, productKey!)
    return { scope: { _tag: "Matching", filter: { productKey } }, productKey }
  })

  const create = Effect.fn("BulkCommands.create")(function*(projectId: ProjectId, input: BulkCommandDraft) {
    const draft = yield* decodeDraft(input)
    const { params, serviceId = null, ttl = defaultTtlSeconds } = draft
    const { productKey, scope } = yield* scopeOf(projectId, draft)
    yield* commands.check(productKey, serviceId, params)
    const createdAt = yield* Clock.currentTimeMillis
    const created = yield* store.insert({ projectId, serviceId, params, ttl, createdAt }, scope)
    switch (created._tag) {
      case "Created":
        return created.bulk
      case "Empty":
        return yield* new BulkScopeUnfit({ reason: "empty" })
      case "TooLarge":
        return yield* new BulkScopeUnfit({ reason: "too-large" })
      case "Busy":
        return yield* new TooManyBulkCommands()
      case "Unknown":
        return yield* unknownDevices(created.deviceIds)
    }
  })

  const get = Effect.fn("BulkCommands.get")(function*(projectId: ProjectId, bulkId: number) {
    return yield* Effect.fromOption(yield* store.get(projectId, bulkId), () => new BulkCommandNotFound({ bulkId }))
  })

  return BulkCommands.of({
    create,
    get,
    list: paged(store.list),
    devices: Effect.fn("BulkCommands.devices")(function*(projectId, bulkId, state, page) {
      yield* get(projectId, bulkId)
      return yield* paged(store.devices)(bulkId, state, page)
    }),
    cancel: Effect.fn("BulkCommands.cancel")(function*(projectId, bulkId) {
      yield* get(projectId, bulkId)
      if (!(yield* store.cancel(bulkId, yield* Clock.currentTimeMillis))) {
        return yield* new BulkCommandCancelled({ bulkId })
      }
    })
  })
})
