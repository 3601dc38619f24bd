/**
 * Mounts the API of one cloud in each framework, and asks each for the products.
 */
import { connect } from "@device-cloud/promise"
import type { AddressInfo } from "node:net"
import { start } from "./cloud.ts"
import * as Express from "./express.ts"
import * as Fastify from "./fastify.ts"
import * as Hono from "./hono.ts"
import { GET } from "./route.ts"

await using cloud = await start()
const handle = await cloud.fetchHandler()
const { key } = await cloud.accessKeys.create("default", { name: "Example", role: "operator" })

const visit = async (name: string, address: AddressInfo | string | null) => {
  const baseUrl = `http://127.0.0.1:${(address as AddressInfo).port}`
  const api = connect({ baseUrl, accessKey: key })
  await api.products.createProduct({
    payload: {
      name,
      node_type: "direct",
      network_type: "wifi",
      validate_type: "weak",
      data_format: "json",
      auth_type: "secret"
    }
  })
  const { results } = await api.products.listProducts()
  const hello = await (await fetch(`${baseUrl}/hello`)).text()
  console.log(`${hello}; products: ${results.map((product) => product.name).join(", ")}`)
}

const express = await Express.serve(handle)
await visit("express", express.address())
express.closeAllConnections()
express.close()

const fastify = await Fastify.serve(handle)
await visit("fastify", fastify.server.address())
fastify.server.closeAllConnections()
await fastify.close()

const hono = await Hono.serve(handle)
await visit("hono", hono.address())
hono.closeAllConnections()
hono.close()

const response = await GET(new Request("http://localhost/openapi/v1/products"))
console.log(`A route by method, without a key: ${response.status}`)
process.exit()
