/**
 * Rows for store contracts: valid, distinct, with times of their own.
 */
import {
  type Device,
  DeviceId,
  DeviceName,
  DeviceStore,
  type DomainEvent,
  type Enqueue,
  type EventRecord,
  type NewDevice,
  type NewProduct,
  type Page,
  type PageRequest,
  type Product,
  ProductKey,
  ProductStore,
  type Project,
  ProjectId,
  ProjectStore,
  type PropertySample
} from "@device-cloud/core"
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import { productDraft } from "../Fixtures.ts"

/** Returns a name that no other sample has. */
export const unique = (prefix: string): string => `${prefix}${randomBytes(6).toString("hex")}`

/** Checks that a list holds these items, whole and in two pages. */
export const assertPages = Effect.fnUntraced(function*<A, E, R>(
  list: (page: PageRequest) => Effect.Effect<Page<A>, E, R>,
  items: ReadonlyArray<A>
) {
  const total = items.length
  assert.deepStrictEqual(yield* list({ page: 1, pageSize: 100 }), { items, total })
  const first = yield* list({ page: 1, pageSize: total - 1 })
  assert.deepStrictEqual(first.items, items.slice(0, -1))
  assert.deepStrictEqual(yield* list({ page: 2, pageSize: total - 1 }), { items: items.slice(-1), total })
})

/** 2026-01-01, in Unix milliseconds. */
export const epoch = Date.UTC(2026, 0, 1)

export const newProject = (): Project => ({ id: ProjectId.make(unique("project")), name: "Sample", createdAt: epoch })

export const newProduct = (projectId: ProjectId, fields: Partial<NewProduct> = {}): NewProduct => ({
  projectId,
  productKey: ProductKey.make(unique("k")),
  productSecret: "productsecret016",
  ...productDraft(),
  description: "Measures temperature",
  photoUrl: "https://example.com/thermometer.png",
  deviceType: "sensor",
  networkType: "wifi",
  protocolType: "",
  uplinkSignature: "any",
  dataSource: 0,
  platform: 0,
  platformName: "",
  dynamicRegister: false,
  status: "developing",
  createdAt: epoch,
  updatedAt: epoch,
  ...fields
})

export const newDevice = (fields: Partial<NewDevice> = {}): NewDevice => ({
  deviceId: DeviceId.make(unique("d")),
  deviceName: DeviceName.make(unique("n")),
  deviceSecret: "0123456789abcdef0123456789abcdef",
  nickname: "Kitchen",
  batchId: 0,
  cloudGateway: null,
  createdAt: epoch,
  ...fields
})

export const insertProject = Effect.gen(function*() {
  const project = newProject()
  yield* (yield* ProjectStore).insert(project)
  return project
})

export const insertProduct = Effect.gen(function*() {
  const project = yield* insertProject
  return yield* insertProductOf(newProduct(project.id))
})

/** Stores a product of a project that is there. */
export const insertProductOf = Effect.fnUntraced(function*(draft: NewProduct) {
  const product = yield* (yield* ProductStore).insert(draft)
  assert(product !== "no-project")
  return product
})

/** Stores devices of one product in the given order. */
export const insertDevices = Effect.fnUntraced(function*(product: Product, devices: ReadonlyArray<NewDevice>) {
  const { insertMany } = yield* DeviceStore
  return Option.getOrThrow(
    yield* Effect.catchTag(insertMany(product.projectId, product.productKey, devices), "DeviceNamesTaken", Effect.die)
  )
})

/** Stores a device in its own project, of its own product. */
export const insertDevice = Effect.gen(function*() {
  const product = yield* insertProduct
  const [device] = yield* insertDevices(product, [newDevice()])
  return { product, device: device! }
})

/** A property set for a device, which counts for a minute. */
export const newCommand = (
  { deviceId, projectId }: Pick<Device, "deviceId" | "projectId">,
  fields: Partial<Enqueue["command"]> = {}
): Enqueue["command"] => {
  const { createdAt = epoch } = fields
  return {
    projectId,
    deviceId,
    serviceId: null,
    userTopic: null,
    params: { a: 1 },
    createdAt,
    expiresAt: createdAt + 60_000,
    ...fields
  }
}

/** What a commit hands over when the device reports these values and events, each one by itself. */
export const reported = (
  { deviceId, deviceName, productKey, projectId }: Pick<Device, "deviceId" | "deviceName" | "productKey" | "projectId">,
  { events = [], samples = [] }: {
    readonly samples?: ReadonlyArray<PropertySample>
    readonly events?: ReadonlyArray<EventRecord>
  }
): ReadonlyArray<DomainEvent> => {
  const device = { deviceId, deviceName, productKey, projectId }
  return [
    ...samples.map(({ propertyId, time, value }): DomainEvent => ({
      _tag: "PropertiesReported",
      device,
      at: epoch,
      properties: { [propertyId]: { value, time } }
    })),
    ...events.map((event): DomainEvent => ({ _tag: "EventReported", device, at: epoch, ...event }))
  ]
}
