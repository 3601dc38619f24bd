/**
 * When a device was online, through what, and why that ended. The address carries
 * how many days are shown and which page.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { useLive } from "../../../api/live.ts"
import { useQuery } from "../../../api/useQuery.ts"
import { SelectField } from "../../../parts/Form.tsx"
import { Card } from "../../../parts/Page.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { Badge, Time } from "../../../parts/Small.tsx"
import { SteadyButton } from "../../../parts/SteadyButton.tsx"
import { type Column, Table } from "../../../parts/Table.tsx"
import { useUrl } from "../../../parts/useUrl.ts"
import { formatNumber, texts as currentTexts, useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { type Connection, connectionsOf } from "./connections.ts"
import { PresenceTimeline } from "./PresenceTimeline.tsx"

const limit = 200
/** Connections that are shown until one asks for all. */
const few = 10

export const PresenceHistory = ({ device: { created_at, device_id, status } }: TabProps) => {
  const { device: { history } } = useTexts()
  const url = useUrl()
  const [isWhole, setWhole] = useState(false)
  const before = url.get("before")
  const days = url.get("days") === "1" ? 1 : 7
  const params = { device_id }
  const latest = useQuery((signal) => api.devices.readPresence({ params, query: { limit }, signal }), [device_id])
  useLive({ device_id, types: ["status", "takeover"] }, latest.reload)
  const earlier = useQuery(
    async (signal) => before === "" ? undefined : await api.devices.readPresence({ params, query: { limit, before }, signal }),
    [device_id, before],
    { keepWhileLoading: false }
  )
  if (status === "unactive") return null
  return (
    <Card title={history.title}>
      <Shown query={latest}>
        {(presence) => {
          const page = before === "" ? presence : earlier.data
          const cursor = page?.cursor ?? ""
          const connections = page === undefined ? [] : connectionsOf(page, before === "")
          const isCut = !isWhole && before === "" && connections.length > few
          return (
            <div class="stack tight">
              <div class="filters">
                <SelectField
                  label={history.range}
                  value={days === 1 ? "1" : "7"}
                  options={[["7", history.days], ["1", history.day]]}
                  onChange={(days) => url.set({ days: days === "1" ? days : "" }, true)}
                />
              </div>
              <PresenceTimeline presence={presence} createdAt={created_at} days={days} />
              {connections.length > 0 && (
                <Table
                  caption={history.caption}
                  columns={columnsOf()}
                  rows={isCut ? connections.slice(0, few) : connections}
                  keyOf={({ key }) => key}
                />
              )}
              {(before !== "" || cursor !== "" || connections.length > few) && (
                <div class="row">
                  <SteadyButton isOff={before === ""} onClick={() => url.set({ before: "" })}>
                    {history.toLatest}
                  </SteadyButton>
                  <SteadyButton
                    isOff={!isCut && cursor === ""}
                    onClick={() => isCut ? setWhole(true) : url.set({ before: cursor })}
                  >
                    {isCut ? history.whole(formatNumber(connections.length)) : history.toEarlier}
                  </SteadyButton>
                </div>
              )}
              <p class="soft small">{history.kept}</p>
            </div>
          )
        }}
      </Shown>
    </Card>
  )
}

const columnsOf = (): ReadonlyArray<Column<Connection>> => {
  const { device: { history } } = currentTexts()
  return [
    {
      id: "from",
      title: history.from,
      kind: "tight",
      cell: ({ from }) => from === undefined ? <span class="soft">{history.earlier}</span> : <Time at={from} />
    },
    {
      id: "to",
      title: history.to,
      kind: "tight",
      cell: ({ to }) => to === undefined ? <Badge mood="good">{history.open}</Badge> : <Time at={to} />
    },
    {
      id: "ended",
      title: history.ended,
      cell: ({ isReplaced, reason = "" }) =>
        isReplaced ? <Badge mood="warn">{history.replaced}</Badge> : <span class="wrap">{reason}</span>
    },
    {
      id: "through",
      title: history.through,
      cell: ({ address, gateway, node, transport }) => (
        <span class="wrap" title={node}>
          {[transport, address, ...gateway === null ? [] : [history.gateway(gateway.device_name)]]
            .filter((text) => text !== "").join(", ")}
          {node !== "" && <span class="soft small">{` ${history.node(node.slice(0, 8))}`}</span>}
        </span>
      )
    }
  ]
}
