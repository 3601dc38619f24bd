/**
 * The reference: a server, of fastify or of node:http alone, that checks an access key and reads a device
 * with its product by the same query as Device Cloud.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, ManagedRuntime, Redacted } from "effect"
import { fastify } from "fastify"
import { createHash, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface BareReadPlan {
  readonly server: "fastify" | "node:http"
  readonly databaseUrl: string
  readonly accessKey: string
}

const plan = JSON.parse(process.argv[2]!) as BareReadPlan
const hashOf = (key: string) => createHash("sha256").update(key).digest()
const knownHash = hashOf(plan.accessKey)
const projectId = "default"

const isKnown = (authorization: string | undefined): boolean =>
  authorization !== undefined && authorization.startsWith("Bearer ") &&
  timingSafeEqual(hashOf(authorization.slice("Bearer ".length)), knownHash)

const sql = await ManagedRuntime.make(PgClient.layer({ url: Redacted.make(plan.databaseUrl), multiplex: true }))
  .runPromise(PgClient.PgClient)
const productColumns = [
  "id",
  "project_id",
  "product_key",
  "product_secret",
  "name",
  "description",
  "photo_url",
  "device_type",
  "node_type",
  "network_type",
  "protocol_type",
  "validate_type",
  "data_format",
  "auth_type",
  "data_source",
  "platform",
  "platform_name",
  "dynamic_register",
  "status",
  "created_at",
  "updated_at"
]
const columns = sql.literal(
  `device.*, ${productColumns.map((column) => `product.${column} AS product__${column}`).join(", ")}`
)

interface Row {
  readonly [column: string]: string | number | bigint | boolean | object | null
  readonly created_at: Date
  readonly updated_at: Date
  readonly activated_at: Date | null
}

const find = (deviceId: string): Promise<ReadonlyArray<Row>> =>
  Effect.runPromise(
    sql<Row>`SELECT ${columns} FROM device JOIN product USING (product_key)
      WHERE device.project_id = ${projectId} AND device.device_id = ${deviceId}`
  )

const dateText = (date: Date | null): string => date === null ? "" : date.toISOString()

const deviceInfo = (row: Row) => ({
  device_id: row["device_id"],
  product_key: row["product_key"],
  device_name: row["device_name"],
  device_secret: row["device_secret"],
  nickname: row["nickname"],
  status: row["status"],
  created_at: dateText(row.created_at),
  register_at: dateText(row.activated_at),
  updated_at: dateText(row.updated_at),
  batch_id: Number(row["batch_id"]),
  enabled_status: row["enabled"] === true ? "enable" : "disable",
  ip: row["ip"],
  firmware_version: row["firmware_version"],
  product_secret: row["product__product_secret"],
  product_name: row["product__name"],
  product_id: Number(row["product__id"]),
  node_type: row["product__node_type"],
  protocol_type: row["product__protocol_type"],
  validate_type: row["product__validate_type"],
  data_format: row["product__data_format"],
  auth_type: row["product__auth_type"],
  device_type: row["product__device_type"],
  time_zone: row["time_zone"],
  platform: row["product__platform"],
  iot_platform: row["product__platform"],
  platform_name: row["product__platform_name"],
  data_source: row["product__data_source"],
  diagnosis_enabled: row["diagnosis_enabled"],
  access_key: "",
  cloud_gtw_mqtt_param: row["cloud_gateway"],
  cloud_gtw_device_uuid: "",
  topics: [],
  sub_amount: 0,
  is_mocker: false,
  bound: row["bound"],
  mac: row["mac"] ?? "",
  tags: row["tags"]
})

const found = (row: Row) => ({ code: 0, message: "success", data: { device_info: deviceInfo(row) } })

const onFastify = async (): Promise<AddressInfo> => {
  const server = fastify()
  server.get<{ Params: { readonly device_id: string } }>(
    "/openapi/v1/things/:device_id/detail",
    async ({ headers, params }, reply) => {
      if (!isKnown(headers.authorization)) return reply.code(401).send()
      const [row] = await find(params.device_id)
      return row === undefined ? reply.code(404).send() : found(row)
    }
  )
  await server.listen({ host: "127.0.0.1", port: 0 })
  return server.server.address() as AddressInfo
}

const answer = async ({ headers, url }: IncomingMessage, response: ServerResponse) => {
  const [, deviceId] = /^\/openapi\/v1\/things\/([^/]+)\/detail$/.exec(url!) ?? []
  if (!isKnown(headers.authorization)) return response.writeHead(401).end()
  const [row] = deviceId === undefined ? [] : await find(decodeURIComponent(deviceId))
  if (row === undefined) return response.writeHead(404).end()
  const body = JSON.stringify(found(row))
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
}

const onNodeHttp = (): Promise<AddressInfo> => {
  const server = createServer(answer)
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address() as AddressInfo)))
}

const { port } = await (plan.server === "fastify" ? onFastify() : onNodeHttp())
process.stdout.write(`${JSON.stringify({ port })}\n`)
