/**
 * A cloud in memory: lamps reach it over MQTT, back ends over its API.
 */
import { MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import { type CloudWithObjects, startCloud } from "@device-cloud/promise"
import * as StorageMemory from "@device-cloud/storage-memory"
import { serve } from "@hono/node-server"
import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"

/** The cloud, and where it is. */
export interface ServedCloud extends AsyncDisposable {
  readonly cloud: CloudWithObjects
  readonly mqttUrl: string
  readonly apiUrl: string
}

/** Starts the cloud on two free ports of this machine. */
export const startServed = async (): Promise<ServedCloud> => {
  const port = await freePort()
  const cloud = await startCloud({
    storage: StorageMemory.layer,
    platform: PlatformNode.layer,
    objects: PlatformNode.MemoryObjectStore.layer,
    // Plain MQTT is for development; devices in the field need the option `tls`.
    servers: [MqttServer.layer({ host: "127.0.0.1", tcp: { port } })]
  })
  const handle = await cloud.fetchHandler()
  const fetch = (request: Request) => handle(request, { address: "127.0.0.1" })
  const server = serve({ fetch, hostname: "127.0.0.1", port: 0 })
  await once(server, "listening")
  return {
    cloud,
    mqttUrl: `mqtt://127.0.0.1:${port}`,
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.close()
      await cloud.close()
    }
  }
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
