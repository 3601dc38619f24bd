/**
 * The audit log: who changed what.
 */
import { api, downloadAddress } from "../../api/client.ts"
import { may } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { TextField } from "../../parts/Form.tsx"
import { localTime } from "../../parts/model/ScalarFields.tsx"
import { Empty, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, Time } from "../../parts/Small.tsx"
import { SteadyButton } from "../../parts/SteadyButton.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { type UrlState, useUrl } from "../../parts/useUrl.ts"
import { texts, useTexts } from "../../text/text.ts"

const AuditLog = () => {
  const { audit, shell } = useTexts()
  const url = useUrl()
  return (
    <Page
      title={shell.pages.audit}
      lead={audit.lead}
      actions={may("admin") && <Export url={url} />}
    >
      {may("admin") ? <Entries url={url} /> : <Empty title={audit.adminsOnly} />}
    </Page>
  )
}

const Export = ({ url }: { readonly url: UrlState }) => {
  const { audit } = useTexts()
  const address = downloadAddress(["audit", "listAuditEntries"], { query: { ...filtersOf(url), format: "csv" } })
  return <a class="button" href={address} download="audit.csv">{audit.exportCsv}</a>
}

const Entries = ({ url }: { readonly url: UrlState }) => {
  const { audit } = useTexts()
  const cursor = url.get("cursor")
  const filters = filtersOf(url)
  const query = useQuery(
    async (signal) => {
      const data = await api.audit.listAuditEntries({
        query: { ...filters, limit: "50", ...cursor === "" ? {} : { cursor } },
        signal
      })
      // Text comes back for the other formats alone.
      return data as Exclude<typeof data, string>
    },
    [JSON.stringify(filters), cursor]
  )
  return (
    <div class="stack">
      <Filters url={url} />
      <Shown query={query}>
        {({ next_cursor, results }) =>
          results.length === 0 ? <Empty title={audit.empty} /> : (
            <>
              <Table
                caption={audit.caption}
                columns={columnsOf(url)}
                rows={results}
                keyOf={({ id }) => String(id)}
              />
              <div class="row end">
                <SteadyButton small={false} isOff={cursor === ""} onClick={() => url.set({ cursor: "" })}>
                  {audit.newest}
                </SteadyButton>
                <SteadyButton
                  small={false}
                  isOff={next_cursor === ""}
                  onClick={() => url.set({ cursor: next_cursor })}
                >
                  {audit.older}
                </SteadyButton>
              </div>
            </>
          )}
      </Shown>
    </div>
  )
}

const Filters = ({ url }: { readonly url: UrlState }) => {
  const { audit } = useTexts()
  const set = (values: Readonly<Record<string, string>>) => url.set({ ...values, cursor: "" }, true)
  return (
    <div class="filters">
      <TextField
        label={audit.action}
        placeholder={audit.actionHint}
        value={url.get("action")}
        onInput={(action) => set({ action: action.trim() })}
      />
      <TextField
        label={audit.resource}
        placeholder={audit.resourceHint}
        value={url.get("resource")}
        onInput={(resource) => set({ resource: resource.trim() })}
      />
      <TextField label={audit.key} value={url.get("key")} onInput={(key) => set({ key: key.trim() })} />
      <TextField
        label={audit.start}
        type="datetime-local"
        value={localTime(Date.parse(url.get("start"))).slice(0, 16)}
        onInput={(start) => set({ start: timeOf(start) })}
      />
      <TextField
        label={audit.end}
        type="datetime-local"
        value={localTime(Date.parse(url.get("end"))).slice(0, 16)}
        onInput={(end) => set({ end: timeOf(end) })}
      />
    </div>
  )
}

/** A time as the address and the API have it: the same in every zone. Empty for what is none. */
const timeOf = (text: string): string => Number.isNaN(Date.parse(text)) ? "" : new Date(text).toISOString()

/** The filters of the address, as the API takes them. */
const filtersOf = (url: UrlState) => {
  const time = (name: string) => timeOf(url.get(name)) || undefined
  const given = {
    action: url.get("action") || undefined,
    resource: url.get("resource") || undefined,
    key_id: url.get("key") || undefined,
    start: time("start"),
    end: time("end")
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    readonly [Name in keyof typeof given]?: string
  }
}

type Entry = Exclude<Awaited<ReturnType<typeof api.audit.listAuditEntries>>, string>["results"][number]

const columnsOf = (url: UrlState): ReadonlyArray<Column<Entry>> => {
  const { audit, common } = texts()
  return [
    { id: "time", title: common.time, kind: "tight", cell: ({ time }) => <Time at={time} /> },
    {
      id: "key",
      title: audit.key,
      cell: ({ key_id, key_name }) =>
        key_id === "" ? audit.server : (
          <button type="button" class="button plain small" onClick={() => url.set({ key: key_id, cursor: "" })}>
            {key_name || key_id}
          </button>
        )
    },
    { id: "action", title: audit.action, cell: ({ action }) => <code>{action}</code> },
    {
      id: "resource",
      title: audit.resource,
      cell: ({ resource_id, resource_kind }) => (
        <span class="wrap">{resource_kind} <code>{resource_id}</code></span>
      )
    },
    {
      id: "result",
      title: audit.result,
      kind: "tight",
      cell: ({ result }) =>
        result === 0
          ? <Badge mood="good">{audit.carriedOut}</Badge>
          : <Badge mood="bad">{audit.refused(result)}</Badge>
    },
    {
      id: "address",
      title: audit.address,
      cell: ({ address, request_id }) => (
        <span class="wrap">{address} <code class="soft" title={audit.request}>{request_id}</code></span>
      )
    }
  ]
}

export default AuditLog
