/**
 * What a scene has done, with each value that mattered.
 */
import { api } from "../../api/client.ts"
import { useLiveMoments } from "../../api/live.ts"
import type { Item } from "../../api/Operations.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Listing } from "../../parts/Listing.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Badge, Json, Time } from "../../parts/Small.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { useTexts } from "../../text/text.ts"
import { type Finding, Findings, moodOf } from "./Findings.tsx"
import "./scenes.css"

type Execution = Item<typeof api.scenes.listExecutions>

export const Executions = ({ id }: { readonly id: string }) => {
  const { scenes: { executions } } = useTexts()
  const url = useUrl()
  const query = usePolledQuery(
    (signal) => api.scenes.listExecutions({ params: { id }, query: { page: url.page, page_size: 10 }, signal }),
    [id, url.page],
    10
  )
  useLiveMoments({ types: ["scene"] }, (events) => {
    if (events.some((event) => event["scene_id"] === id)) query.reload()
  })
  return (
    <Listing query={query} empty={<Empty title={executions.empty}>{executions.emptyBody}</Empty>}>
      {(rows) => rows.map((row) => <ExecutionItem key={row.execution_id} execution={row} />)}
    </Listing>
  )
}

/** What has fired and what came of it in one line; all that mattered when one opens it. */
const ExecutionItem = ({ execution }: { readonly execution: Execution }) => {
  const { scenes } = useTexts()
  const { executions } = scenes
  const { event, reason, status, triggered_at } = execution
  const triggers = execution.triggers as ReadonlyArray<Finding>
  const fired = triggers.find(({ verdict }) => verdict === "holds")?.reason
  const { device_name } = event as { readonly device_name?: string }
  return (
    <details class="card execution">
      <summary>
        <h2><Time at={triggered_at} /></h2>
        <span class="wrap">{[device_name, fired ?? reason].filter(Boolean).join(": ")}</span>
        <Badge mood={moodOf(status)}>{executions.statuses[status] ?? status}</Badge>
      </summary>
      <div class="stack">
      {reason !== "" && <p class="wrap">{reason}</p>}
      <Findings title={scenes.triggers} parts={triggers} />
      <Findings title={scenes.conditions} parts={execution.conditions as ReadonlyArray<Finding>} />
      <Findings title={scenes.actions} parts={execution.actions as ReadonlyArray<Finding>} />
      <details>
        <summary>{executions.event}</summary>
        <Json value={event} />
      </details>
      </div>
    </details>
  )
}
