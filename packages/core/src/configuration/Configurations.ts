/**
 * Manages remote configurations and sends them to devices
 * (docs/api/configurations.md).
 */
import { Clock, Context, Effect, Layer, Option, Schema, Semaphore, Stream } from "effect"
import { Hex } from "effect/encoding"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { type Device, type DeviceId, type DeviceIdentity, deviceIdentity, DeviceNotFound } from "../device/Device.ts"
import type { DeviceFilter } from "../device/DeviceFilter.ts"
import { DeviceStore } from "../device/DeviceStore.ts"
import type { DeviceGroupNotFound } from "../group/DeviceGroup.ts"
import { DeviceGroups, filterOf } from "../group/DeviceGroups.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"
import { Mac } from "../kernel/Mac.ts"
import { type Page, paged, type PageRequest } from "../kernel/Page.ts"
import { StoreError, untilStored } from "../kernel/StoreError.ts"
import { Objects } from "../object/Objects.ts"
import { type ObjectTooLarge, parseAddress, type StoredObject } from "../object/StoredObject.ts"
import { type ProductKey, ProductNotFound } from "../product/Product.ts"
import { ProductStore } from "../product/ProductStore.ts"
import type { QuotaExceeded } from "../project/Quota.ts"
import type { ProjectId } from "../project/Project.ts"
import * as DeviceMethod from "../uplink/DeviceMethod.ts"
import { DeviceMethods } from "../uplink/DeviceMethods.ts"
import { noConfiguration, success } from "../uplink/DeviceReply.ts"
import {
  type Configuration,
  ConfigurationDraft,
  ConfigurationNotFound,
  type ConfigurationProgress,
  type ConfigurationScope,
  maxConfigurationSize
} from "./Configuration.ts"
import { ConfigurationStore } from "./ConfigurationStore.ts"

type Missing = ProductNotFound | DeviceNotFound | StoreError

export class Configurations extends Context.Service<Configurations, {
  /**
   * Stores the next version as an object with the address that `addressOf`
   * returns. Fails with `InvalidInput` if the content is too large or no JSON.
   */
  readonly put: <R>(
    projectId: ProjectId,
    scope: ConfigurationScope,
    draft: ConfigurationDraft,
    addressOf: (object: StoredObject) => Effect.Effect<string, never, R>
  ) => Effect.Effect<Configuration, InvalidInput | ObjectTooLarge | QuotaExceeded | Missing, R>
  /** Returns the kept versions of the product or device, newest first. */
  readonly versions: (
    projectId: ProjectId,
    scope: ConfigurationScope
  ) => Effect.Effect<ReadonlyArray<Configuration>, Missing>
  /** Removes all versions of the product or device with their files. */
  readonly remove: (projectId: ProjectId, scope: ConfigurationScope) => Effect.Effect<void, Missing>
  /**
   * Sends their configuration to the connected devices, in the background, at most
   * 50 devices a second. One push runs at a time on a node; at most 16 wait, and
   * further ones fail with `TooManyPushes`. Devices that the push does not reach
   * ask for themselves.
   */
  readonly push: (
    projectId: ProjectId,
    scope: ConfigurationScope
  ) => Effect.Effect<void, ConfigurationNotFound | TooManyPushes | Missing>
  /** As `push`, to the connected devices of a group; those without a configuration get none. */
  readonly pushToGroup: (
    projectId: ProjectId,
    groupId: number
  ) => Effect.Effect<void, DeviceGroupNotFound | TooManyPushes | StoreError>
  /** Returns what the devices of the product last heard, the latest first. */
  readonly progress: (
    projectId: ProjectId,
    productKey: ProductKey,
    page: PageRequest
  ) => Effect.Effect<Page<ConfigurationProgress>, InvalidInput | ProductNotFound | StoreError>
}>()("@device-cloud/core/configuration/Configurations") {
  /** Declares the methods with which devices ask for their configuration, too. */
  static readonly layer: Layer.Layer<
    Configurations,
    never,
    | ConfigurationStore
    | DeviceGroups
    | DeviceMethods
    | DeviceSessions
    | DeviceStore
    | Identifiers
    | Mac
    | ProductStore
  > = Layer.effect(Configurations, Effect.suspend(() => make))
}

/** Too many pushes wait on this node. */
export class TooManyPushes extends DomainError<TooManyPushes>()(
  "TooManyPushes",
  {},
  () => "Too many pushes wait; try again later"
) {}

/** Pushes that wait on a node. */
const maxWaiting = 16
/** Devices that are read at once. */
const pageSize = 100
/** Time between two devices of a push: 50 devices a second. */
const pace = "20 millis"

const decodeDraft = decodeInput(ConfigurationDraft)

const scopeText = (scope: ConfigurationScope): string => "productKey" in scope ? scope.productKey : scope.deviceId

/** The configuration as devices read it. */
const offer = ({ configurationId, sha256, size, url }: Configuration): Json => ({
  configId: configurationId,
  configSize: size,
  sign: sha256,
  signMethod: "Sha256",
  url,
  getType: "file"
})

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const refuse = (message: string) => new InvalidInput({ issues: [{ path: ["content"], message }] })

const make = Effect.gen(function*() {
  const store = yield* ConfigurationStore
  const devices = yield* DeviceStore
  const products = yield* ProductStore
  const groups = yield* DeviceGroups
  const sessions = yield* DeviceSessions
  const identifiers = yield* Identifiers
  const mac = yield* Mac
  // An application may store no objects.
  const objects = yield* Effect.serviceOption(Objects)
  const scope = yield* Effect.scope
  const turns = yield* Semaphore.make(1)
  let waiting = 0

  const device = Effect.fnUntraced(function*(projectId: ProjectId, deviceId: DeviceId) {
    const found = yield* devices.get(projectId, { deviceId })
    return deviceIdentity(yield* Effect.fromOption(found, () => DeviceNotFound.of({ deviceId })))
  })

  const check = Effect.fnUntraced(function*(projectId: ProjectId, scope: ConfigurationScope) {
    if ("deviceId" in scope) return void (yield* device(projectId, scope.deviceId))
    const { productKey } = scope
    yield* Effect.fromOption(yield* products.get(projectId, productKey), () => new ProductNotFound({ productKey }))
  })

  const removeFile = (projectId: ProjectId, url: string) => {
    const address = parseAddress(url)
    return address === undefined || Option.isNone(objects)
      ? Effect.void
      : objects.value.remove(projectId, address.objectId).pipe(
        Effect.catch((error) => Effect.logWarning("The file of an old configuration could not be removed", error))
      )
  }

  const put: Configurations["Service"]["put"] = Effect.fnUntraced(function*(projectId, scope, input, addressOf) {
    const { content, format } = yield* decodeDraft(input)
    const bytes = new TextEncoder().encode(content)
    if (bytes.length > maxConfigurationSize) return yield* refuse(`Expected at most ${maxConfigurationSize} bytes`)
    if (format === "json" && !isJson(content)) return yield* refuse("Expected valid JSON")
    yield* check(projectId, scope)
    if (Option.isNone(objects)) {
      return yield* new StoreError({ operation: "Configurations.put", retryable: false, cause: "no store of objects" })
    }
    const object = yield* objects.value.upload(
      projectId,
      `configuration.${format === "json" ? "json" : "txt"}`,
      Stream.succeed(bytes)
    )
    const url = yield* addressOf(object)
    const inserted = yield* store.insert(scope, {
      configurationId: yield* identifiers.objectId,
      format,
      content,
      size: bytes.length,
      sha256: Hex.encode(mac.sha256(bytes)),
      url,
      createdAt: yield* Clock.currentTimeMillis
    }).pipe(
      // It may have been stored, and the answer was lost: a version has its file.
      Effect.tapError(({ retryable }) => retryable ? Effect.void : removeFile(projectId, url))
    )
    if (Option.isNone(inserted)) {
      yield* removeFile(projectId, url)
      return yield* "productKey" in scope
        ? new ProductNotFound({ productKey: scope.productKey })
        : DeviceNotFound.of(scope)
    }
    yield* Effect.forEach(inserted.value.dropped, (old) => removeFile(projectId, old.url), { discard: true })
    return inserted.value.stored
  })

  const versions = Effect.fn("Configurations.versions")(
    (projectId: ProjectId, scope: ConfigurationScope) => Effect.andThen(check(projectId, scope), store.versions(scope))
  )

  const remove = Effect.fn("Configurations.remove")(function*(projectId: ProjectId, scope: ConfigurationScope) {
    yield* check(projectId, scope)
    const removed = yield* store.remove(scope)
    yield* Effect.forEach(removed, ({ url }) => removeFile(projectId, url), { discard: true })
  })

  /** Sends its configuration to a device, if it is connected: another hears nothing, and is not noted. */
  const tell = Effect.fnUntraced(function*(identity: DeviceIdentity) {
    const { deviceId } = identity
    const current = yield* store.current(identity)
    if (Option.isNone(current) || (yield* sessions.connected([deviceId])).length === 0) return
    const { configurationId } = current.value
    yield* store.note({ deviceId, configurationId, at: yield* Clock.currentTimeMillis })
    yield* sessions.deliverAnywhere(deviceId, { method: "thing.config.push", params: offer(current.value) })
  })

  /** Tells the connected devices that the filter selects. */
  const tellAll = Effect.fnUntraced(function*(projectId: ProjectId, filter: DeviceFilter) {
    if (filter.status !== undefined && filter.status !== "online") return
    let before: Device["id"] | undefined
    do {
      const online = devices.list(projectId, { ...filter, status: "online", before }, { page: 1, pageSize })
      const { items } = yield* untilStored(online)
      for (const { device, product } of items) {
        yield* untilStored(tell(deviceIdentity({ device, product })))
        yield* Effect.sleep(pace)
      }
      before = items.length < pageSize ? undefined : items.at(-1)!.device.id
    } while (before !== undefined)
  })

  const pushInTurn = Effect.fnUntraced(function*(projectId: ProjectId, filter: DeviceFilter) {
    if (waiting >= maxWaiting) return yield* new TooManyPushes()
    waiting++
    yield* turns.withPermits(1)(tellAll(projectId, filter)).pipe(
      Effect.catchCause((cause) => Effect.logWarning("A configuration could not be pushed to all devices", cause)),
      Effect.ensuring(Effect.sync(() => waiting--)),
      Effect.forkIn(scope)
    )
  })

  const push = Effect.fn("Configurations.push")(function*(projectId: ProjectId, of: ConfigurationScope) {
    if ("deviceId" in of) {
      const identity = yield* device(projectId, of.deviceId)
      if (Option.isNone(yield* store.current(identity))) return yield* new ConfigurationNotFound({ of: of.deviceId })
      return yield* tell(identity)
    }
    yield* check(projectId, of)
    if ((yield* store.versions(of)).length === 0) return yield* new ConfigurationNotFound({ of: scopeText(of) })
    yield* pushInTurn(projectId, { productKey: of.productKey })
  })

  const pushToGroup = Effect.fn("Configurations.pushToGroup")(function*(projectId: ProjectId, groupId: number) {
    yield* pushInTurn(projectId, filterOf(yield* groups.get(projectId, groupId)))
  })

  const progress = Effect.fn("Configurations.progress")(
    (projectId: ProjectId, productKey: ProductKey, page: PageRequest) =>
      Effect.gen(function*() {
        yield* Effect.fromOption(yield* products.get(projectId, productKey), () => new ProductNotFound({ productKey }))
        return yield* paged(store.progress)(productKey, page)
      })
  )

  const methods = [
    DeviceMethod.request({
      name: "thing.config.get",
      action: "PostSysMsg",
      decode: Schema.Unknown,
      handle: (_, { device, receivedAt }) =>
        Effect.gen(function*() {
          const current = yield* store.current(device)
          if (Option.isNone(current)) return noConfiguration
          const { configurationId } = current.value
          yield* store.note({ deviceId: device.deviceId, configurationId, at: receivedAt })
          return success(offer(current.value))
        })
    }),
    DeviceMethod.request({
      name: "thing.config.push_reply",
      form: "answer",
      decode: Schema.Struct({ code: Schema.Finite }),
      handle: ({ code }, { device, receivedAt }) =>
        Effect.gen(function*() {
          if (code === 200) yield* store.confirm(device.deviceId, receivedAt)
          return success({})
        })
    })
  ]
  yield* Effect.orDie((yield* DeviceMethods).register(methods))

  return Configurations.of({ put, versions, remove, push, pushToGroup, progress })
})
