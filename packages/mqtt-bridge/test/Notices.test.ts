import { assert, it } from "@effect/vitest"
import type { Message } from "amqplib"
import { connectionOf, endedOf, messageOf } from "../src/rabbitmq/Notices.ts"

const settle = () => {}

const message = (routingKey: string, headers: Readonly<Record<string, unknown>>): Message =>
  ({ fields: { routingKey, redelivered: true }, properties: { headers }, content: Buffer.from("{}") }) as never

const created = (headers: Readonly<Record<string, unknown>>) =>
  connectionOf(
    message("connection.created", {
      user: "desk&pk",
      protocol: "{'MQTT',\"3.1.1\"}",
      pid: "<rabbit@host.1.2.0>",
      connected_at: 1000,
      peer_host: "{192,0,2,7}",
      variable_map: "#{<<\"client_id\">> => <<\"pk.desk|a=b|\">>}",
      ...headers
    }),
    settle
  )

it("a notice says which device has connected, from where and when", () => {
  assert.deepStrictEqual(created({}), {
    id: "<rabbit@host.1.2.0>",
    device: { productKey: "pk", deviceName: "desk" },
    clientId: "pk.desk|a=b|",
    ip: "192.0.2.7",
    since: 1000,
    settle
  } as never)
})

it("addresses of IPv6 are read, also those that stand for IPv4", () => {
  assert.strictEqual(created({ peer_host: "{8193,3512,0,0,0,0,0,1}" })?.ip, "2001:db8:0:0:0:0:0:1")
  assert.strictEqual(created({ peer_host: "{0,0,0,0,0,65535,49152,519}" })?.ip, "192.0.2.7")
})

it("clients that are no devices are left out", () => {
  assert.isUndefined(created({ protocol: "{0,9,1}" }))
  assert.isUndefined(created({ user: "cloud" }))
  assert.isUndefined(created({ variable_map: "" }))
})

it("the end of a connection has the id of its beginning", () => {
  assert.strictEqual(endedOf(message("connection.closed", { pid: "<rabbit@host.1.2.0>" })), "<rabbit@host.1.2.0>")
  assert.isUndefined(endedOf(message("connection.created", { pid: "<rabbit@host.1.2.0>" })))
})

it("a message has its topic, and its time if the broker stamps messages", () => {
  const headers = { "x-mqtt-publish-qos": 1, timestamp_in_ms: 5 }
  assert.deepStrictEqual(messageOf(message(".sys.pk.desk.thing.event.property.post", headers), settle), {
    topic: "/sys/pk/desk/thing/event/property/post",
    payload: Buffer.from("{}"),
    takenAt: 5,
    isRedelivered: true,
    settle
  })
  assert.isUndefined(messageOf(message(".sys.pk.desk", {}), settle).takenAt)
})
