/**
 * Requests of 2 MB, each with an Idempotency-Key of its own. Some succeed, some
 * are refused.
 */
import { randomBytes } from "node:crypto"
import type { Attack } from "../Attack.ts"
import { floodHttp } from "../HttpFlood.ts"

const concurrency = 8

export const idempotencyBodies: Attack = {
  name: "idempotency-bodies",
  prepare: async (attacker) => {
    const padding = "x".repeat(1_900_000)
    const product = {
      name: "Idempotent",
      node_type: "direct",
      network_type: "ethernet",
      validate_type: "weak",
      data_format: "json",
      auth_type: "secret"
    }
    const bodies = [
      Buffer.from(JSON.stringify({ ...product, padding })),
      Buffer.from(JSON.stringify({ ...product, node_type: padding }))
    ]
    let turn = 0
    return () =>
      floodHttp(attacker, concurrency, () => ({
        method: "POST",
        path: "/openapi/v1/products",
        headers: { "idempotency-key": randomBytes(16).toString("hex") },
        body: bodies[turn++ % bodies.length]!
      }))
  }
}
