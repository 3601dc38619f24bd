/**
 * Devices and readers that take more than their part: others lose nothing.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { request } from "node:http"
import { flood, openDevice, publish } from "../../DeviceSocket.ts"
import { residentBytes } from "../../fairness/Watch.ts"
import { ownerKey } from "../../ReferenceServer.ts"
import type { Drill, Result } from "../Drill.ts"
import { withLab } from "../Lab.ts"

/** The most that a node may grow in the flood. */
const maxGrowth = 2
const flooders = 20

export const floodOfReports: Drill = {
  name: "flood",
  does: "20 devices report as fast as their sockets take it, for a minute, beside others",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 1, devices: 20 }, async (lab): Promise<Result> => {
      const [node] = lab.nodes as [typeof lab.nodes[0]]
      const attackers = await lab.api.createDevices(await lab.api.createProduct("Flood"), flooders)
      await lab.visit()
      lab.report()
      lab.command()
      await sleep(form === "short" ? 3000 : 10_000)
      const quiet = await residentBytes(node!.pid) ?? 0
      const sockets = attackers.map((device) => {
        const report = publish(device.topic, JSON.stringify({ id: "1", params: { temperature: 20 } }), 1)
        const socket = openDevice(device, {
          mqtt: node!.address.mqtt,
          onConnack: () => flood(socket, () => report)
        })
        return socket
      })
      let peak = 0
      const end = performance.now() + (form === "short" ? 5000 : 60_000)
      while (performance.now() < end) {
        peak = Math.max(peak, await residentBytes(node!.pid) ?? Infinity)
        await sleep(250)
      }
      for (const socket of sockets) socket.destroy()
      const recovery = await lab.recovered(Date.now())
      const missed = peak > maxGrowth * quiet ? [`memory ${(peak / quiet).toFixed(1)} times the quiet one`] : []
      return { ...await lab.settle(1000), recovery, missed }
    })
}

/** Devices of which one in so many reads nothing for a while. */
const oneIn = 4

export const frozenSubscribers: Drill = {
  name: "frozen-subscribers",
  does: "a quarter of the devices, and a client of the stream of events, read nothing for a while",
  forms: ["short", "long"],
  run: (form) =>
    withLab({ nodes: 2, devices: 20 }, async (lab): Promise<Result> => {
      await lab.visit()
      lab.report()
      lab.command()
      await sleep(1000)
      const deaf = request(`${lab.anyNode().address.http}/openapi/v1/events`, {
        headers: { authorization: `Bearer ${ownerKey}` }
      }, (response) => response.pause())
      deaf.on("error", () => {}).end()
      const frozen = lab.devices.filter((_, place) => place % oneIn === 0).flatMap(({ open }) => open)
      for (const { socket } of frozen) socket.pause()
      await sleep(form === "short" ? 4000 : 30_000)
      for (const { socket } of frozen) socket.resume()
      const recovery = await lab.recovered(Date.now())
      deaf.destroy()
      return { ...await lab.settle(1000), recovery }
    })
}
