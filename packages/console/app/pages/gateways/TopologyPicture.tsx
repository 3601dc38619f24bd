/**
 * A gateway and its sub-devices as a tree.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { deviceHref, type DeviceStatus } from "../../parts/Devices.tsx"
import { useTexts } from "../../text/text.ts"
import type { SubDevice } from "./Gateway.tsx"
import "./topology.css"

type Named = Pick<SubDevice, "device_id" | "device_name">

const node = { height: 46, indent: 22, step: 56, top: 88, width: 200 }

/** As many columns as there is room for; each hangs on a line of its own. */
export const TopologyPicture = ({ gateway, statuses, subDevices }: {
  readonly gateway: Named
  readonly subDevices: ReadonlyArray<Named>
  readonly statuses: Readonly<Record<string, string>>
}) => {
  const { gateways } = useTexts()
  const frame = useRef<HTMLDivElement>(null)
  const [room, setRoom] = useState(320)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setRoom(Math.floor(entry!.contentRect.width)))
    observer.observe(frame.current!)
    return () => observer.disconnect()
  }, [])
  const fitting = Math.max(1, Math.floor(room / node.width))
  const rows = Math.max(Math.ceil(subDevices.length / fitting), Math.min(4, subDevices.length))
  const columns = Math.ceil(subDevices.length / Math.max(rows, 1))
  const width = Math.max(room, node.width)
  const column = Math.min(280, width / Math.max(columns, 1))
  const left = (width - column * columns) / 2
  const boxWidth = Math.min(260, column - node.indent - 12)
  const xOf = (index: number) => left + Math.floor(index / rows) * column + 8
  const yOf = (index: number) => node.top + index % rows * node.step
  const gatewayWidth = Math.min(300, width - 4)
  const height = subDevices.length === 0 ? node.height + 4 : node.top + (rows - 1) * node.step + node.height + 4
  const bus = 68
  return (
    <div class="topology" ref={frame}>
      <svg width={width} height={height} role="group" aria-label={gateways.pictureLabel(gateway.device_name)}>
        {subDevices.length > 0 && (
          <path
            class="topology-line"
            d={[
              `M${width / 2} ${node.height + 2}V${bus}`,
              `M${Math.min(xOf(0), width / 2)} ${bus}H${Math.max(xOf(subDevices.length - 1), width / 2)}`,
              ...subDevices.map((_, index) => `M${xOf(index)} ${bus}V${yOf(index) + node.height / 2}h${node.indent}`)
            ].join("")}
          />
        )}
        <Node device={gateway} status={statuses[gateway.device_id]} x={(width - gatewayWidth) / 2} y={2} width={gatewayWidth} isGateway />
        {subDevices.map((device, index) => (
          <Node
            key={device.device_id}
            device={device}
            status={statuses[device.device_id]}
            x={xOf(index) + node.indent}
            y={yOf(index)}
            width={boxWidth}
          />
        ))}
      </svg>
    </div>
  )
}

const Node = ({ device: { device_id, device_name }, isGateway = false, status = "", width, x, y }: {
  readonly device: Named
  readonly status: string | undefined
  readonly x: number
  readonly y: number
  readonly width: number
  readonly isGateway?: boolean
}) => {
  const { common } = useTexts()
  const words = common.deviceStatus[status as DeviceStatus] ?? status
  const room = Math.floor((width - 40) / 8)
  return (
    <a href={deviceHref(device_id)} class="topology-node" aria-label={`${device_name}, ${words}`}>
      <title>{`${device_name}, ${words}`}</title>
      <rect class={isGateway ? "gateway" : ""} x={x} y={y} width={width} height={node.height} rx={8} />
      <StatusDot status={status} x={x + 17} y={y + node.height / 2} />
      <text x={x + 32} y={y + 20}>
        {device_name.length > room ? `${device_name.slice(0, room - 1)}…` : device_name}
      </text>
      <text class="topology-status" x={x + 32} y={y + 36}>{words}</text>
    </a>
  )
}

/** Online is full, offline is a ring, never connected is a square: the colour says the same. */
const StatusDot = ({ status, x, y }: { readonly status: string; readonly x: number; readonly y: number }) =>
  status === "unactive"
    ? <rect class="topology-dot unactive" x={x - 5} y={y - 5} width={10} height={10} />
    : <circle class={`topology-dot ${status}`} cx={x} cy={y} r={5} />
