/**
 * The reference: a server, of fastify or of node:http alone, that checks the signature
 * of a property post. One statement writes the rows of all posts that came during the last write.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, ManagedRuntime, Redacted } from "effect"
import { fastify } from "fastify"
import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { LoadDevice } from "./Load.ts"
import { makeReportRows, type Report } from "./ReportRows.ts"

export interface BareUplinkPlan {
  readonly server: "fastify" | "node:http"
  readonly databaseUrl: string
  readonly devices: ReadonlyArray<Pick<LoadDevice, "deviceId" | "productKey" | "deviceName" | "deviceSecret">>
}

interface Query {
  readonly product_key: string
  readonly device_name: string
  readonly random: string
  readonly sign: string
}

interface Post {
  readonly params: Readonly<Record<string, unknown>>
}

const plan = JSON.parse(process.argv[2]!) as BareUplinkPlan
const devices = new Map(plan.devices.map((device) => [`${device.productKey}/${device.deviceName}`, device]))

const database = PgClient.layer({ url: Redacted.make(plan.databaseUrl), multiplex: true })
const write = await ManagedRuntime.make(database).runPromise(makeReportRows)

interface Waiting {
  readonly report: Report
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

let waiting: Array<Waiting> = []
let writing = false

const writeAll = async () => {
  writing = true
  while (waiting.length > 0) {
    const batch = waiting
    waiting = []
    try {
      await Effect.runPromise(write(batch.map(({ report }) => report), Date.now()))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
  writing = false
}

const store = (report: Report): Promise<void> =>
  new Promise((resolve, reject) => {
    waiting.push({ report, resolve, reject })
    // Runs after all requests that can be read now.
    if (!writing) {
      writing = true
      setImmediate(writeAll)
    }
  })

const isSigned = ({ device_name, product_key, random, sign }: Query, secret: string): boolean => {
  const expected = createHmac("sha256", secret)
    .update(`productKey${product_key}deviceName${device_name}random${random}`).digest()
  const presented = Buffer.from(sign, "hex")
  return presented.length === expected.length && timingSafeEqual(presented, expected)
}

const reportOf = (deviceId: string, { params }: Post): Report => {
  const now = Date.now()
  const reported: Record<string, { readonly value: unknown; readonly time: number }> = {}
  const values: Array<string> = []
  const properties = Object.keys(params)
  for (const property of properties) {
    const said = params[property]
    const { time = now, value } = (typeof said === "object" ? said : { value: said }) as {
      readonly value: unknown
      readonly time?: number
    }
    reported[property] = { value, time }
    values.push(JSON.stringify(value))
  }
  return { deviceId, reported: JSON.stringify(reported), properties, values }
}

const stored = { code: 0, message: "success", data: {} }

/** Stores the post if its signature is right. */
const take = async (query: Query, body: Post): Promise<boolean> => {
  const device = devices.get(`${query.product_key}/${query.device_name}`)
  if (device === undefined || !isSigned(query, device.deviceSecret)) return false
  await store(reportOf(device.deviceId, body))
  return true
}

const onFastify = async (): Promise<AddressInfo> => {
  const server = fastify()
  server.post<{ Querystring: Query; Body: Post }>(
    "/openapi/v1/thing-uplink",
    async ({ body, query }, reply) => await take(query, body) ? stored : reply.code(401).send()
  )
  await server.listen({ host: "127.0.0.1", port: 0 })
  return server.server.address() as AddressInfo
}

const answer = async (request: IncomingMessage, chunks: ReadonlyArray<Buffer>, response: ServerResponse) => {
  const query = Object.fromEntries(new URL(request.url!, "http://localhost").searchParams) as unknown as Query
  if (!await take(query, JSON.parse(Buffer.concat(chunks).toString()) as Post)) return response.writeHead(401).end()
  const body = JSON.stringify(stored)
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
}

const onNodeHttp = (): Promise<AddressInfo> => {
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => answer(request, chunks, response))
  })
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address() as AddressInfo)))
}

const { port } = await (plan.server === "fastify" ? onFastify() : onNodeHttp())
process.stdout.write(`${JSON.stringify({ port })}\n`)
