/**
 * What a scene has done, with each value that mattered.
 */
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Listing } from "../../parts/Listing.tsx"
import { Card, Empty } from "../../parts/Page.tsx"
import { Badge, Json, Time } from "../../parts/Small.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { useTexts } from "../../text/text.ts"
import { type Finding, Findings, moodOf } from "./Findings.tsx"

export const Executions = ({ id }: { readonly id: string }) => {
  const { scenes } = useTexts()
  const { executions } = scenes
  const url = useUrl()
  const query = usePolledQuery(
    (signal) => api.scenes.listExecutions({ params: { id }, query: { page: url.page, page_size: 10 }, signal }),
    [id, url.page],
    10
  )
  useLive({ types: ["scene"] }, (event) => {
    if (event["scene_id"] === id) query.reload()
  })
  return (
    <Listing query={query} empty={<Empty title={executions.empty}>{executions.emptyBody}</Empty>}>
      {(rows) =>
        rows.map((execution) => (
          <Card
            key={execution.execution_id}
            title={<Time at={execution.triggered_at} />}
            actions={<Badge mood={moodOf(execution.status)}>{execution.status}</Badge>}
          >
            {execution.reason !== "" && <p class="wrap">{execution.reason}</p>}
            <div class="stack tight">
              <h3>{executions.event}</h3>
              <Json value={execution.event} />
            </div>
            <Findings title={scenes.triggers} parts={execution.triggers as ReadonlyArray<Finding>} />
            <Findings title={scenes.conditions} parts={execution.conditions as ReadonlyArray<Finding>} />
            <Findings title={scenes.actions} parts={execution.actions as ReadonlyArray<Finding>} />
          </Card>
        ))}
    </Listing>
  )
}
