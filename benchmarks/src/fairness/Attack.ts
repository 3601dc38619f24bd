/**
 * The shape of an attack: what one project, device or stranger does to the others.
 */
import { type Tenant, type TenantPlan } from "../Tenant.ts"
import type { LoadDevice } from "../Load.ts"

export interface Attack {
  readonly name: string
  /** Makes what the attack needs in a project of the attacker, and returns a function that begins it. */
  readonly prepare: (attacker: Attacker) => Promise<() => void>
  /** The highest counts that pass, by name. */
  readonly limits?: Readonly<Record<string, number>>
}

/** What an attack works with. It runs in a process of its own, which is killed at the end. */
export interface Attacker {
  readonly cloud: TenantPlan
  /** The attacker's own project. */
  readonly tenant: Tenant
  /** A device of the bystanders' project. The attacker knows its name, not its secret. */
  readonly bystander: Pick<LoadDevice, "productKey" | "deviceName">
  /** Counts something for the report. */
  readonly count: (name: string, n?: number) => void
  /** An address that the attacker connects from; others than those of bystanders where the system has several. */
  readonly address: (n?: number) => string | undefined
}
