/**
 * The pages that need no key, as fast as they come.
 */
import type { Attack } from "../Attack.ts"
import { floodHttp } from "../HttpFlood.ts"

const concurrency = 50
const paths = ["/docs", "/openapi.json"]

export const docs: Attack = {
  name: "docs",
  prepare: async (attacker) => {
    let turn = 0
    return () => floodHttp(attacker, concurrency, () => ({ method: "GET", path: paths[turn++ % paths.length]! }))
  }
}
