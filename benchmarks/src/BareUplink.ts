/**
 * The reference: a fastify server that checks the signature of a property post.
 * One statement writes the rows of all posts that came during the last write.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, ManagedRuntime, Redacted } from "effect"
import { fastify } from "fastify"
import { createHmac, timingSafeEqual } from "node:crypto"
import type { AddressInfo } from "node:net"
import type { LoadDevice } from "./Load.ts"
import { makeReportRows, type Report } from "./ReportRows.ts"

export interface BareUplinkPlan {
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

const server = fastify()

server.post<{ Querystring: Query; Body: Post }>("/openapi/v1/thing-uplink", async ({ body, query }, reply) => {
  const device = devices.get(`${query.product_key}/${query.device_name}`)
  if (device === undefined || !isSigned(query, device.deviceSecret)) return reply.code(401).send()
  await store(reportOf(device.deviceId, body))
  return { code: 0, message: "success", data: {} }
})

await server.listen({ host: "127.0.0.1", port: 0 })
process.stdout.write(`${JSON.stringify({ port: (server.server.address() as AddressInfo).port })}\n`)
