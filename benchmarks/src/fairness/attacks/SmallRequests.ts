/**
 * Small requests of one device that are no reports: 4,000 in a second, or as
 * many as the socket takes.
 */
import type { LoadDevice } from "../../Load.ts"
import type { Attack, Attacker } from "../Attack.ts"
import { flood, openDevice, publish } from "../../DeviceSocket.ts"

const perSecond = 4000
/** Milliseconds. */
const interval = 5

/** One of each kind. */
const requestsOf = ({ topic }: LoadDevice): ReadonlyArray<Buffer> => {
  const on = (rest: string) => topic.replace("event/property/post", rest)
  return [
    publish(on("deviceinfo/get"), `{"id":"1","params":[]}`),
    publish(on("dsltemplate/get"), `{"id":"2","params":{}}`),
    publish(on("ota/firmware/get"), `{"id":"3","params":{"module":"default"}}`),
    publish(on("bind/post"), `{"id":"4","params":{"random":"abcdefgh"}}`),
    publish(topic, `{"id":"5","sys":{"ack":0},"params":{"humidity":1}}`),
    publish(on("deviceinfo/update"), `{"id":"6","params":[{"attrKey":"k","attrValue":"v"}]}`)
  ]
}

/** Keeps one device connected, and calls `begin` when it is. */
const connected = async (
  { address, cloud, count, tenant }: Attacker,
  begin: (next: () => Buffer, write: { readonly socket: ReturnType<typeof openDevice> }) => void
): Promise<() => void> => {
  const [device] = await tenant.createDevices(await tenant.createProduct("Small"), 1)
  const requests = requestsOf(device!)
  let turn = 0
  const next = () => {
    count("requests sent")
    return requests[turn++ % requests.length]!
  }
  const open = (): void => {
    openDevice(device!, {
      mqtt: cloud.mqtt,
      from: address(),
      onConnack: (code, socket) => code === 0 ? begin(next, { socket }) : socket.destroy(),
      onMessage: () => count("replies"),
      onClose: () => setTimeout(open, 100)
    })
  }
  return open
}

export const smallRequests: Attack = {
  name: "small-requests",
  prepare: (attacker) =>
    connected(attacker, (next, { socket }) => {
      const timer = setInterval(() => {
        // What the server does not read is not sent later.
        if (socket.writableNeedDrain) return
        for (let i = 0; i < perSecond / 1000 * interval; i++) socket.write(next())
      }, interval)
      socket.once("close", () => clearInterval(timer))
    })
}

export const pipelinedRequests: Attack = {
  name: "pipelined-requests",
  prepare: (attacker) => connected(attacker, (next, { socket }) => flood(socket, next))
}
