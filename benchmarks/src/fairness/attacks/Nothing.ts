/**
 * The control: what the bars say when nobody attacks.
 */
import type { Attack } from "../Attack.ts"

export const nothing: Attack = {
  name: "nothing",
  prepare: async () => () => {}
}
