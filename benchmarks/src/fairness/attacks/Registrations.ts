/**
 * Registrations of new devices with the secret of a product.
 */
import { createHmac } from "node:crypto"
import type { Attack } from "../Attack.ts"
import { floodHttp } from "../HttpFlood.ts"

const concurrency = 50

export const registrations: Attack = {
  name: "registrations",
  prepare: async (attacker) => {
    const { product_key, product_secret } = await attacker.tenant.createProduct("Registrations")
    let turn = 0
    return () =>
      floodHttp(attacker, concurrency, () => {
        const device_name = `device${++turn}`
        const random = "123456"
        const text = `deviceName${device_name}productKey${product_key}random${random}`
        const sign = createHmac("sha1", product_secret).update(text).digest("hex")
        return {
          method: "POST",
          path: "/openapi/v1/auth/generator/device",
          body: JSON.stringify({ product_key, device_name, random, sign_method: "hmacsha1", sign })
        }
      })
  }
}
