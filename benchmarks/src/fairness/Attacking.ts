/**
 * The process of an attacker: prepares one attack, carries it out, counts.
 */
import { answer } from "../Processes.ts"
import type { Attacker } from "./Attack.ts"
import { attacks } from "./Attacks.ts"
import { Tenant, type TenantPlan } from "../Tenant.ts"

export interface AttackingPlan {
  readonly attack: string
  readonly cloud: TenantPlan
  readonly bystander: Attacker["bystander"]
}

export type Counts = Readonly<Record<string, number>>

const plan = JSON.parse(process.argv[2]!) as AttackingPlan
const counts: Record<string, number> = {}

const attacker: Attacker = {
  cloud: plan.cloud,
  tenant: new Tenant(plan.cloud),
  bystander: plan.bystander,
  count: (name, n = 1) => counts[name] = (counts[name] ?? 0) + n,
  // Only Linux has all of 127.0.0.0/8 without configuration.
  address: (n = 0) => process.platform === "linux" ? `127.0.${1 + Math.floor(n / 250)}.${1 + n % 250}` : undefined
}

const attack = attacks.find(({ name }) => name === plan.attack)!
let begin: (() => void) | undefined
answer({
  prepare: async () => {
    begin = await attack.prepare(attacker)
  },
  begin: () => begin!(),
  counts: (): Counts => counts
})
