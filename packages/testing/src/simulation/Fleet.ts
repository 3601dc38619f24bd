/**
 * What there is in the cloud before a simulation begins: projects, products with a
 * thing model, and the devices of the plan.
 */
import {
  defaultProjectId,
  type Device,
  type DeviceIdentity,
  deviceIdentity,
  Devices,
  type Product,
  Products,
  type ProjectId,
  Projects,
  ThingModels
} from "@device-cloud/core"
import { Effect } from "effect"
import { productDraft } from "../Fixtures.ts"
import { type Plan, projects } from "./Plan.ts"

/** One project of the fleet, with a product of each kind. */
export interface FleetProject {
  readonly projectId: ProjectId
  readonly direct: Product
  readonly gateway: Product
  readonly sub: Product
}

export interface Fleet {
  readonly projects: ReadonlyArray<FleetProject>
  /** By the id of the plan. */
  readonly devices: ReadonlyMap<number, DeviceIdentity>
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
  return {
    projectId,
    direct: yield* make("direct"),
    gateway: yield* make("gateway"),
    sub: yield* make("gateway-sub")
  } satisfies FleetProject
})

/** Makes everything through the management services of a node. */
export const make = Effect.fnUntraced(function*(plan: Plan) {
  const made = yield* Effect.forEach(Array.from({ length: projects }, (_, place) => place), makeProject)
  const devices = yield* Devices
  const identities = new Map<number, DeviceIdentity>()
  for (const { id, profile, project } of plan.devices) {
    const { direct, gateway, projectId } = made[project]!
    const product = profile === "gateway" ? gateway : direct
    const device: Device = yield* devices.create(projectId, product.productKey, { deviceName: `device-${id}` })
    identities.set(id, deviceIdentity({ device, product }))
  }
  return { projects: made, devices: identities } satisfies Fleet
})
