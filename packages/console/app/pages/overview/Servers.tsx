/**
 * The servers of the cloud and the health of its storage.
 */
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Ago, Badge, type Mood, Time } from "../../parts/Small.tsx"
import { Table } from "../../parts/Table.tsx"
import { formatNumber, useTexts } from "../../text/text.ts"
import { rhythm } from "./rhythm.ts"

const moods: Readonly<Record<string, Mood>> = { steady: "good", starting: "busy", draining: "warn", silent: "bad" }

export const Servers = () => {
  const { common, overview } = useTexts()
  const query = usePolledQuery((signal) => api.overview.listNodes({ signal }), [], rhythm)
  return (
    <Card title={overview.servers}>
      <Shown query={query}>
        {({ nodes, storage }) => (
          <>
            <Table
              caption={overview.servers}
              rows={nodes}
              keyOf={({ node_id }) => node_id}
              columns={[
                { id: "node", title: overview.server, cell: ({ node_id }) => <code>{node_id}</code> },
                {
                  id: "status",
                  title: common.status,
                  cell: ({ status }) => (
                    <Badge mood={moods[status] ?? "plain"}>{overview.nodeStatus[status] ?? status}</Badge>
                  )
                },
                {
                  id: "connections",
                  title: overview.connections,
                  kind: "number",
                  cell: ({ connections }) => connections === null ? "–" : formatNumber(connections)
                },
                { id: "started", title: overview.started, cell: ({ started_at }) => <Time at={started_at} /> },
                { id: "heard", title: overview.heard, cell: ({ heartbeat_at }) => <Ago at={heartbeat_at} /> }
              ]}
            />
            <Storage storage={storage} />
          </>
        )}
      </Shown>
    </Card>
  )
}

const Storage = ({ storage }: { readonly storage: Data<typeof api.overview.listNodes>["storage"] }) => {
  const { overview } = useTexts()
  return (
    <p class="row">
      <strong>{overview.storage}</strong>
      {storage === null ? <Badge>{overview.unknown}</Badge> : (
        <>
          <Badge mood={storage.reachable ? "good" : "bad"}>
            {storage.reachable ? overview.reachable : overview.unreachable}
          </Badge>
          <span class="soft">
            {overview.latency(formatNumber(storage.latency))}
            {storage.migration !== null && <>, <code>{storage.migration}</code></>}
          </span>
        </>
      )}
    </p>
  )
}
