/**
 * All endpoints of the specification.
 */
import { devices, shadows, topology } from "./DeviceOperations.ts"
import { mesh } from "./MeshOperations.ts"
import { products, thingModels } from "./ProductOperations.ts"
import { scenes } from "./SceneOperations.ts"
import { objects, upgrades } from "./UpgradeOperations.ts"
import { registration, uplinks } from "./UplinkOperations.ts"

export const operations = [
  ...devices,
  ...topology,
  ...products,
  ...thingModels,
  ...shadows,
  ...upgrades,
  ...scenes,
  ...objects,
  ...mesh,
  ...registration,
  ...uplinks
]
