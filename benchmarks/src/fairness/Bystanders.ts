/**
 * Those who stand by while another project attacks: a device that posts, a
 * client of the API that reads and sets, and a device that comes and goes. A
 * process of its own.
 */
import { Agent, request } from "node:http"
import type { Socket } from "node:net"
import type { LoadDevice } from "../Load.ts"
import { answer } from "../Processes.ts"
import { openDevice, publish } from "../DeviceSocket.ts"
import { Series, type Summary } from "./Series.ts"
import type { TenantPlan } from "../Tenant.ts"

export interface BystandersPlan {
  readonly cloud: TenantPlan
  /** An access key of the project that reads no secrets, as a dashboard has it. */
  readonly viewer: string
  readonly posting: LoadDevice
  readonly connecting: LoadDevice
}

/** What the bystanders have seen. */
export interface Seen {
  /** From the post of properties at QoS 1 to the reply. */
  readonly posts: Summary
  /** Requests of the API: four reads of a device, then a property set. */
  readonly requests: Summary
  /** From the connection to the CONNACK. */
  readonly connects: Summary
}

/** Milliseconds between the operations of each kind. */
const intervals = { posts: 20, requests: 20, connects: 200 }
/** Waiting requests beyond this fail at once. */
const maxRequests = 1000

const plan = JSON.parse(process.argv[2]!) as BystandersPlan
const { cloud, connecting, posting, viewer } = plan

const posts = new Series()
let device: Socket | undefined
let packetId = 0

const connectPosting = (): void => {
  const setTopic = posting.topic.replace("event/property/post", "service/property/set")
  openDevice(posting, {
    mqtt: cloud.mqtt,
    onConnack: (code, socket) => code === 0 ? device = socket : socket.destroy(),
    onMessage: (topic, payload, socket) => {
      const { code, id } = JSON.parse(payload.toString()) as { readonly id: string; readonly code?: number }
      if (topic === setTopic) {
        socket.write(publish(`${setTopic}_reply`, JSON.stringify({ id, code: 200, data: {} }), 1, 65_535))
      } else if (code === 200) posts.end(Number(id))
      else posts.fail(Number(id), `code ${code}`)
    },
    onClose: () => {
      device = undefined
      posts.failAll("connection lost")
      setTimeout(connectPosting, 100)
    }
  })
}

const post = (): void => {
  const id = posts.begin()
  if (device === undefined) return posts.fail(id, "not connected")
  packetId = packetId % 60_000 + 1
  const params = { temperature: 20 + id % 100 / 10, humidity: id % 100 }
  device.write(publish(posting.topic, JSON.stringify({ id: String(id), version: "1.0", params }), 1, packetId))
}

const requests = new Series()
const agent = new Agent({ keepAlive: true, noDelay: true })
let turn = 0
let waiting = 0

const send = (): void => {
  const isSet = ++turn % 5 === 0
  const operation = requests.begin()
  if (waiting > maxRequests) return requests.fail(operation, "too many waiting")
  waiting++
  const path = `/openapi/v1/things/${posting.deviceId}/${isSet ? "properties" : "detail"}`
  const sent = request(`${cloud.http}${path}`, {
    method: isSet ? "POST" : "GET",
    agent,
    headers: { authorization: `Bearer ${isSet ? cloud.key : viewer}`, "content-type": "application/json" }
  }, (response) => {
    response.resume()
    response.once(
      "end",
      () =>
        response.statusCode === 200 ? requests.end(operation) : requests.fail(operation, `HTTP ${response.statusCode}`)
    )
  })
  sent.once("error", ({ message }) => requests.fail(operation, message))
  sent.once("close", () => waiting--)
  sent.end(isSet ? JSON.stringify({ params: { temperature: 20 + turn % 100 / 10 } }) : undefined)
}

const connects = new Series()

const connectAndLeave = (): void => {
  const operation = connects.begin()
  openDevice(connecting, {
    mqtt: cloud.mqtt,
    onConnack: (code, socket) => {
      if (code === 0) connects.end(operation)
      else connects.fail(operation, `CONNACK ${code}`)
      socket.destroy()
    },
    onClose: () => connects.fail(operation, "closed")
  })
}

connectPosting()
setInterval(post, intervals.posts)
setInterval(send, intervals.requests)
setInterval(connectAndLeave, intervals.connects)
answer({ take: (): Seen => ({ posts: posts.take(), requests: requests.take(), connects: connects.take() }) })
