import { Agent, request } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, expect, test, vi } from "vitest"
import { start } from "../src/cloud.ts"
import * as Express from "../src/express.ts"
import * as Fastify from "../src/fastify.ts"

/** Asks for the products, and returns the status and the body. */
const ask = (address: AddressInfo, method: string, host: string, path = "/openapi/v1/products") =>
  new Promise<readonly [status: number | undefined, body: string]>((resolve, reject) => {
    request({ host: address.address, port: address.port, method, path, headers: { host } })
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
    for (const path of ["/openapi/../metrics", "/openapi/%2E%2e/metrics", "/openapi/..\\metrics"]) {
      assert.strictEqual((await ask(address, "GET", "localhost", path))[0], 404, path)
    }
    server.closeAllConnections()
  }
  express.close()
  await fastify.close()
})

test("a client whose body is not read gets its response, and can send the next request", async () => {
  await using cloud = await start()
  const handle = await cloud.fetchHandler()
  const express = await Express.serve(handle)
  const fastify = await Fastify.serve(handle)
  for (const server of [express, fastify.server]) {
    const { address, port } = server.address() as AddressInfo
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; i < 2; i++) {
      const status = await new Promise((resolve, reject) => {
        request({ host: address, port, agent, method: "POST", path: "/openapi/v1/products" })
          .on("response", (response) => response.resume().on("end", () => resolve(response.statusCode)))
          .on("error", reject)
          .end("x".repeat(300_000))
      })
      assert.strictEqual(status, 401)
    }
    agent.destroy()
    server.closeAllConnections()
  }
  express.close()
  await fastify.close()
})

test("routes by method have one cloud however often they are loaded, and count by what the proxy has seen", async () => {
  const codes = new Set<number>()
  for (let i = 0; i < 51; i++) {
    if (i === 25) vi.resetModules()
    const { POST } = await import("../src/route.ts")
    const response = await POST(
      new Request("http://localhost/openapi/v1/browser-sessions", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-csrf-protection": "1",
          "x-forwarded-for": `203.0.113.${i}, 192.0.2.1`
        },
        body: JSON.stringify({ access_key: "wrong" })
      })
    )
    codes.add(((await response.json()) as { readonly code: number }).code)
  }
  assert.deepStrictEqual([...codes], [40100, 42900])
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
