import { request } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, expect, test } from "vitest"
import { start } from "../src/cloud.ts"
import * as Express from "../src/express.ts"
import * as Fastify from "../src/fastify.ts"

/** Asks for the products, and returns the status and the body. */
const ask = (address: AddressInfo, method: string, host: string) =>
  new Promise<readonly [status: number | undefined, body: string]>((resolve, reject) => {
    request({ host: address.address, port: address.port, method, path: "/openapi/v1/products", headers: { host } })
      .on("response", async (response) => {
        let body = ""
        for await (const chunk of response) body += String(chunk)
        resolve([response.statusCode, body])
      })
      .on("error", reject)
      .end()
  })

test("a request reaches what is mounted alone, and gets a response, whatever its host and method are", async () => {
  await using cloud = await start()
  const handle = await cloud.fetchHandler()
  const express = await Express.serve(handle)
  const fastify = await Fastify.serve(handle)
  for (const server of [express, fastify.server]) {
    const address = server.address() as AddressInfo
    for (const host of ["localhost", "localhost/metrics?", "ada@localhost", "localhost:99999", "a b", ""]) {
      const [status, body] = await ask(address, "GET", host)
      assert.strictEqual(status, 401, host)
      assert.strictEqual(JSON.parse(body).code, 40100, host)
    }
    assert.strictEqual((await ask(address, "TRACE", "localhost"))[0], 405)
    server.closeAllConnections()
  }
  express.close()
  await fastify.close()
})

test("a request that comes when the cloud is closed ends", async () => {
  const cloud = await start()
  const handle = await cloud.fetchHandler()
  await cloud.close()
  const express = await Express.serve(handle)
  const fastify = await Fastify.serve(handle)
  assert.strictEqual((await ask(express.address() as AddressInfo, "GET", "localhost"))[0], 500)
  await expect(ask(fastify.server.address() as AddressInfo, "GET", "localhost")).rejects.toThrow("socket hang up")
  express.closeAllConnections()
  express.close()
  await fastify.close()
})
