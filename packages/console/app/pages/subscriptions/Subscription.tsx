/**
 * One subscription: how far it is behind, who reads it, and why pushing fails.
 */
import { useRoute } from "preact-iso"
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form } from "../../parts/Form.tsx"
import { DeleteButton } from "../../parts/Listing.tsx"
import { Card, Facts, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Ago, Json, Time } from "../../parts/Small.tsx"
import { Table } from "../../parts/Table.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { useTexts } from "../../text/text.ts"
import { lacksTime, type Start, StartField, startOf } from "./StartField.tsx"
import { SubscriptionForm } from "./SubscriptionForm.tsx"
import { Delivery, type SubscriptionData, waitingOf } from "./Subscriptions.tsx"

const Subscription = () => {
  const { common, shell, subscriptions } = useTexts()
  const { params } = useRoute()
  const subscription_id = params["subscriptionId"]!
  const query = usePolledQuery(
    (signal) => api.subscriptions.getSubscription({ params: { subscription_id }, signal }),
    [subscription_id],
    5
  )
  return (
    <Page
      title={query.data?.name ?? subscription_id}
      crumbs={[{ title: shell.pages.subscriptions, href: "/console/subscriptions" }]}
      actions={query.data !== undefined && canWrite("subscriptions") && (
        <Actions subscription={query.data} reload={query.reload} />
      )}
    >
      <Shown query={query}>
        {(subscription) => (
          <div class="stack">
            <div class="halves">
              <Card title={subscriptions.lag}>
                {subscription.lag.gap && <p class="notice bad">{subscriptions.gap}</p>}
                <Facts
                  facts={[
                    [subscriptions.waiting, waitingOf(subscription.lag)],
                    [
                      subscriptions.oldest,
                      subscription.lag.events === 0 ? subscriptions.upToDate : <Ago at={subscription.lag.oldest_at} />
                    ],
                    [subscriptions.filter, filterOf(subscription)],
                    [common.created, <Time at={subscription.created_at} />],
                    [common.changed, <Time at={subscription.updated_at} />]
                  ]}
                />
              </Card>
              {subscription.push === null
                ? <Workers subscription={subscription} />
                : <Push subscription={subscription} push={subscription.push} reload={query.reload} />}
            </div>
          </div>
        )}
      </Shown>
    </Page>
  )
}

const filterOf = ({ filter }: SubscriptionData) => {
  const { subscriptions } = useTexts()
  return Object.keys(filter).length === 0 ? subscriptions.allEvents : <Json value={filter} />
}

const Push = (
  { push, reload, subscription }: {
    readonly subscription: SubscriptionData
    readonly push: NonNullable<SubscriptionData["push"]>
    readonly reload: () => void
  }
) => {
  const { subscriptions } = useTexts()
  const params = { subscription_id: String(subscription.subscription_id) }
  const resume = async () => {
    await api.subscriptions.resumeSubscription({ params })
    tell(subscriptions.resumed)
    reload()
  }
  return (
    <Card
      title={subscriptions.push}
      actions={push.status === "paused" && canWrite("subscriptions") && (
        <button type="button" class="button primary" onClick={() => void resume().catch(tellFailure)}>
          {subscriptions.resume}
        </button>
      )}
    >
      <Facts
        facts={[
          [subscriptions.readBy, <Delivery subscription={subscription} />],
          [subscriptions.pushedTo, <code class="wrap">{subscription.webhook?.url}</code>],
          [subscriptions.failingSince, push.status === "ok" ? undefined : <Ago at={push.failing_since} />]
        ]}
      />
    </Card>
  )
}

const Workers = ({ subscription: { workers } }: { readonly subscription: SubscriptionData }) => {
  const { subscriptions } = useTexts()
  return (
    <Card title={subscriptions.workersTitle}>
      {workers.length === 0 ? <p class="soft">{subscriptions.noWorkers}</p> : (
        <Table
          caption={subscriptions.workersCaption}
          rows={workers}
          keyOf={({ worker }) => worker}
          columns={[
            { id: "worker", title: subscriptions.worker, cell: ({ worker }) => <span class="wrap">{worker}</span> },
            { id: "shards", title: subscriptions.shards, kind: "number", cell: ({ shards }) => shards },
            { id: "lease", title: subscriptions.lease, cell: ({ lease_until }) => <Time at={lease_until} /> }
          ]}
        />
      )}
    </Card>
  )
}

const Actions = (
  { reload, subscription }: { readonly subscription: SubscriptionData; readonly reload: () => void }
) => {
  const { common, subscriptions } = useTexts()
  const goTo = useGoTo()
  const [open, setOpen] = useState<"edit" | "seek">()
  const close = () => setOpen(undefined)
  const params = { subscription_id: String(subscription.subscription_id) }
  return (
    <>
      <button type="button" class="button" onClick={() => setOpen("edit")}>{common.edit}</button>
      <button type="button" class="button" onClick={() => setOpen("seek")}>{subscriptions.seek}</button>
      <DeleteButton
        title={subscriptions.removeTitle(subscription.name)}
        body={subscriptions.removeBody(waitingOf(subscription.lag))}
        remove={() => api.subscriptions.deleteSubscription({ params })}
        onDeleted={() => goTo("/console/subscriptions")}
      />
      {open === "edit" && <SubscriptionForm subscription={subscription} onClose={close} onSaved={reload} />}
      {open === "seek" && <Seek subscription={subscription} onClose={close} onMoved={reload} />}
    </>
  )
}

const Seek = (
  { onClose, onMoved, subscription: { lag, name, subscription_id } }: {
    readonly subscription: SubscriptionData
    readonly onClose: () => void
    readonly onMoved: () => void
  }
) => {
  const { subscriptions } = useTexts()
  const close = useClose(onClose)
  const [start, setStart] = useState<Start>({ kind: "earliest", time: "" })
  return (
    <Dialog title={subscriptions.seekTitle(name)} onClose={onClose}>
      <Form
        submit={subscriptions.seek}
        danger
        disabled={lacksTime(start)}
        onCancel={onClose}
        onSubmit={async () => {
          await api.subscriptions.seekSubscription({
            params: { subscription_id: String(subscription_id) },
            payload: { to: startOf(start) }
          })
          tell(subscriptions.moved)
          onMoved()
          close()
        }}
      >
        <p>{subscriptions.seekBody(waitingOf(lag))}</p>
        <StartField path="to" value={start} onChange={setStart} />
      </Form>
    </Dialog>
  )
}

export default Subscription
