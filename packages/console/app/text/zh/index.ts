/**
 * Chinese.
 */
import type { Texts } from "../text.ts"
import { audit } from "./audit.ts"
import { authorities } from "./authorities.ts"
import { common } from "./common.ts"
import { device } from "./device.ts"
import { devices } from "./devices.ts"
import { events } from "./events.ts"
import { firmware } from "./firmware.ts"
import { gateways } from "./gateways.ts"
import { groups } from "./groups.ts"
import { jobs } from "./jobs.ts"
import { keys } from "./keys.ts"
import { mesh } from "./mesh.ts"
import { overview } from "./overview.ts"
import { products } from "./products.ts"
import { projects } from "./projects.ts"
import { scenes } from "./scenes.ts"
import { shell } from "./shell.ts"
import { subscriptions } from "./subscriptions.ts"

export const zh: Texts = {
  audit,
  authorities,
  common,
  device,
  devices,
  events,
  firmware,
  gateways,
  groups,
  jobs,
  keys,
  mesh,
  overview,
  products,
  projects,
  scenes,
  shell,
  subscriptions
}
