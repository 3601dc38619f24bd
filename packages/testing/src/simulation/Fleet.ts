/**
 * What there is in the cloud before a simulation begins: projects, products with a
 * thing model, and the devices of the plan.
 */
import {
  defaultProjectId,
  deviceIdentity,
  Devices,
  type Json,
  type Product,
  Products,
  type ProjectId,
  Projects,
  type SceneId,
  Scenes,
  ThingModels
} from "@device-cloud/core"
import { Effect } from "effect"
import { productDraft } from "../Fixtures.ts"
import type { Credentials } from "./FleetDevice.ts"
import { type Plan, projects } from "./Plan.ts"

/** One project of the fleet, with a product of each kind. */
export interface FleetProject {
  readonly projectId: ProjectId
  readonly direct: Product
  readonly gateway: Product
  readonly sub: Product
  readonly scenes: FleetScenes
}

/** What a project has rules for. */
export interface FleetScenes {
  /** Fires when a direct device reports more than {@link hot}. */
  readonly hot: SceneId
  /** Fires when a direct device goes offline. */
  readonly left: SceneId
  /** Fires when a direct device has been offline for {@link longMinutes}. */
  readonly gone: SceneId
  /** Fires every ten minutes. */
  readonly clock: SceneId
}

/** Degrees. */
export const hot = 27

/** Minutes. */
export const longMinutes = 2

export interface Fleet {
  readonly projects: ReadonlyArray<FleetProject>
  /** By the id of the plan. */
  readonly devices: ReadonlyMap<number, FleetMember>
}

/** A device and its sub-devices. */
export interface FleetMember {
  readonly own: Credentials
  readonly subDevices: ReadonlyArray<Credentials>
}

/** The thing model of all products of the fleet. */
const model = {
  properties: [
    { id: "temperature", name: "Temperature", accessMode: "r", dataType: { type: "double", min: -100, max: 100 } },
    { id: "target", name: "Target", accessMode: "rw", dataType: { type: "int", min: 0, max: 100_000 } }
  ],
  events: [],
  services: [{
    id: "move",
    name: "Move",
    callType: "async",
    inputData: [{ id: "to", name: "To", dataType: { type: "int" } }]
  }]
}

const makeScenes = Effect.fnUntraced(function*(projectId: ProjectId, { productKey }: Product) {
  const scenes = yield* Scenes
  const make = (
    name: string,
    URI: "trigger/device/property" | "trigger/device/status" | "trigger/cron",
    params: Readonly<Record<string, Json>>
  ) =>
    Effect.map(
      scenes.create(projectId, { name, status: "enable", triggers: [{ URI, params }], conditions: [], actions: [] }),
      ({ scene }) => scene.sceneId
    )
  const ofAny = { product_key: productKey, device_name: "*" }
  return {
    hot: yield* make("hot", "trigger/device/property", {
      ...ofAny,
      property_id: "temperature",
      compare_type: ">",
      compare_val: String(hot)
    }),
    left: yield* make("left", "trigger/device/status", { ...ofAny, status: "offline" }),
    gone: yield* make("gone", "trigger/device/status", {
      ...ofAny,
      status: "offline",
      status_duration: longMinutes
    }),
    clock: yield* make("clock", "trigger/cron", { cron: "0 */10 * * * *" })
  } satisfies FleetScenes
})

const makeProject = Effect.fnUntraced(function*(place: number) {
  const projectId = place === 0
    ? defaultProjectId
    : (yield* (yield* Projects).create({ name: `project ${place}` })).id
  const products = yield* Products
  const models = yield* ThingModels
  const make = Effect.fnUntraced(function*(nodeType: Product["nodeType"]) {
    const product = yield* products.create(projectId, productDraft({ name: nodeType, nodeType }))
    yield* models.importFrom(projectId, product.productKey, "metadata", JSON.stringify(model))
    return product
  })
  const direct = yield* make("direct")
  return {
    projectId,
    direct,
    gateway: yield* make("gateway"),
    sub: yield* make("gateway-sub"),
    scenes: yield* makeScenes(projectId, direct)
  } satisfies FleetProject
})

/** Makes everything through the management services of a node. */
export const make = Effect.fnUntraced(function*(plan: Plan) {
  const made = yield* Effect.forEach(Array.from({ length: projects }, (_, place) => place), makeProject)
  const devices = yield* Devices
  const create = Effect.fnUntraced(function*(projectId: ProjectId, product: Product, deviceName: string) {
    const device = yield* devices.create(projectId, product.productKey, { deviceName })
    return { identity: deviceIdentity({ device, product }), deviceSecret: device.deviceSecret } satisfies Credentials
  })
  const members = new Map<number, FleetMember>()
  for (const { id, profile, project, subDevices } of plan.devices) {
    const { direct, gateway, projectId, sub } = made[project]!
    members.set(id, {
      own: yield* create(projectId, profile === "gateway" ? gateway : direct, `device-${id}`),
      subDevices: yield* Effect.forEach(
        Array.from({ length: subDevices }, (_, place) => place + 1),
        (place) => create(projectId, sub, `device-${id}-${place}`)
      )
    })
  }
  return { projects: made, devices: members } satisfies Fleet
})
