/**
 * The subscriptions of the project, and how far each is behind.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { canRead, canWrite } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Listing } from "../../parts/Listing.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Ago, Badge, type Mood } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"
import { SubscriptionForm } from "./SubscriptionForm.tsx"
import { WebhookKey } from "./WebhookKey.tsx"

export type SubscriptionData = Data<typeof api.subscriptions.getSubscription>

/** Each is read with its lag, which counts events: few at a time. */
const pageSize = 10

const Subscriptions = () => {
  const { shell, subscriptions } = useTexts()
  const url = useUrl()
  const [isCreating, setCreating] = useState(false)
  const query = usePolledQuery(
    async (signal) => {
      const page = await api.subscriptions.listSubscriptions({ query: { page: url.page, page_size: pageSize }, signal })
      const results = await Promise.all(
        page.results.map(({ subscription_id }) =>
          api.subscriptions.getSubscription({ params: { subscription_id: String(subscription_id) }, signal })
        )
      )
      return { ...page, results }
    },
    [url.page],
    10
  )
  return (
    <Page
      title={shell.pages.subscriptions}
      lead={subscriptions.lead}
      actions={canWrite("subscriptions") && (
        <button type="button" class="button primary" onClick={() => setCreating(true)}>{subscriptions.create}</button>
      )}
    >
      <div class="stack">
        <Listing query={query} empty={<Empty title={subscriptions.empty}>{subscriptions.emptyBody}</Empty>}>
          {(rows) => (
            <Table
              caption={subscriptions.caption}
              columns={columnsOf()}
              rows={rows}
              keyOf={({ subscription_id }) => String(subscription_id)}
            />
          )}
        </Listing>
        {canRead({ reads: "scenes", isOfProducts: false, role: "admin" }) && <WebhookKey />}
      </div>
      {isCreating && <SubscriptionForm onClose={() => setCreating(false)} onSaved={query.reload} />}
    </Page>
  )
}

const columnsOf = (): ReadonlyArray<Column<SubscriptionData>> => {
  const { common, subscriptions } = texts()
  return [
    {
      id: "name",
      title: common.name,
      cell: ({ name, subscription_id }) => (
        <a class="wrap" href={`/console/subscriptions/${subscription_id}`}>{name}</a>
      )
    },
    { id: "read", title: subscriptions.readBy, cell: (subscription) => <Delivery subscription={subscription} /> },
    { id: "waiting", title: subscriptions.waiting, kind: "number", cell: ({ lag }) => waitingOf(lag) },
    {
      id: "oldest",
      title: subscriptions.oldest,
      kind: "tight",
      cell: ({ lag }) => lag.events === 0 ? <span class="soft">{subscriptions.upToDate}</span> : <Ago at={lag.oldest_at} />
    }
  ]
}

/** How many events wait, as far as they are counted. */
export const waitingOf = ({ events, has_more }: SubscriptionData["lag"]): string =>
  texts().subscriptions.events(formatNumber(events), has_more)

const moods: Readonly<Record<string, Mood>> = { ok: "good", failing: "bad", paused: "warn" }

/** Who gets the events, and why not. */
export const Delivery = ({ subscription: { push, workers } }: { readonly subscription: SubscriptionData }) => {
  const { subscriptions } = useTexts()
  if (push !== null) {
    return (
      <span class="wrap">
        <Badge mood={moods[push.status] ?? "plain"}>{subscriptions.pushStates[push.status]}</Badge>{" "}
        {push.status !== "ok" && (push.reason || subscriptions.reasonHidden)}
      </span>
    )
  }
  return workers.length === 0
    ? <Badge>{subscriptions.nobody}</Badge>
    : <Badge mood="good">{subscriptions.workers(workers.length)}</Badge>
}

export default Subscriptions
