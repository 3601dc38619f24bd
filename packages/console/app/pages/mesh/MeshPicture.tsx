/**
 * A mesh network as rings: the gateways inside, the nodes around, each with its address.
 */
import { deviceHref, type DeviceStatus } from "../../parts/Devices.tsx"
import { useTexts } from "../../text/text.ts"
import { address } from "./address.ts"
import "./mesh.css"
import type { MeshNode } from "./MeshNetwork.tsx"

const node = { radius: 25, room: 58 }
const gateway = 2

interface Placed {
  readonly node: MeshNode
  readonly x: number
  readonly y: number
}

export const MeshPicture = ({ nodes, statuses }: {
  readonly nodes: ReadonlyArray<MeshNode>
  readonly statuses: Readonly<Record<string, string>>
}) => {
  const { mesh } = useTexts()
  const sorted = [...nodes].sort((a, b) => a.mesh_addr - b.mesh_addr)
  const gateways = sorted.filter(({ node_type }) => node_type === gateway)
  const inner = place(gateways, gateways.length === 1 ? 0 : innerRadius(gateways.length))
  const outer = rings(sorted.filter(({ node_type }) => node_type !== gateway), inner.radius)
  const edge = outer.radius + node.radius + 4
  return (
    <div class="mesh">
      <svg
        width={2 * edge}
        height={2 * edge}
        viewBox={`${-edge} ${-edge} ${2 * edge} ${2 * edge}`}
        role="group"
        aria-label={mesh.pictureLabel}
      >
        {[inner.radius, ...outer.radii].filter((radius) => radius > 0).map((radius) => (
          <circle key={radius} class="mesh-ring" r={radius} />
        ))}
        {[...inner.placed, ...outer.placed].map((placed) => (
          <Node key={placed.node.device_id} placed={placed} status={statuses[placed.node.device_id] ?? ""} />
        ))}
      </svg>
    </div>
  )
}

const innerRadius = (count: number): number => Math.max(count === 0 ? 0 : 40, count * node.room / (2 * Math.PI))

const place = (nodes: ReadonlyArray<MeshNode>, radius: number) => ({
  radius,
  placed: nodes.map((node, index): Placed => {
    const angle = 2 * Math.PI * index / nodes.length - Math.PI / 2
    return { node, x: radius * Math.cos(angle), y: radius * Math.sin(angle) }
  })
})

/** As many rings as the nodes need, each filled by its share. */
const rings = (nodes: ReadonlyArray<MeshNode>, inside: number) => {
  const radii: Array<number> = []
  const roomIn = () => radii.reduce((sum, radius) => sum + roomOf(radius), 0)
  while (roomIn() < nodes.length) radii.push((radii.at(-1) ?? inside) + (radii.length === 0 ? 80 : node.room + 8))
  const room = roomIn()
  const placed: Array<Placed> = []
  let filled = 0
  for (const radius of radii) {
    filled += roomOf(radius)
    const next = nodes.slice(placed.length, Math.round(nodes.length * filled / room))
    placed.push(...place(next, radius).placed)
  }
  return { radii, radius: radii.at(-1) ?? inside, placed }
}

const roomOf = (radius: number): number => Math.floor(2 * Math.PI * radius / node.room)

const Node = ({ placed: { node: { device_id, device_name, mesh_addr, node_type }, x, y }, status }: {
  readonly placed: Placed
  readonly status: string
}) => {
  const { common, mesh } = useTexts()
  const words = [device_name, mesh.kinds[node_type], address(mesh_addr), common.deviceStatus[status as DeviceStatus]]
    .filter(Boolean).join(", ")
  return (
    <a href={deviceHref(device_id)} class={`mesh-node ${node_type === gateway ? "gateway" : ""} ${status}`} aria-label={words}>
      <title>{words}</title>
      <circle cx={x} cy={y} r={node.radius} />
      <text x={x} y={y} dy="-0.1em">{address(mesh_addr).slice(2)}</text>
      <text class="mesh-status" x={x} y={y} dy="1em">{mesh.signs[status as DeviceStatus] ?? ""}</text>
    </a>
  )
}
