/**
 * The remote configuration of a product: its versions, and what devices know of it.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data, Item } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery, useQuery } from "../../api/useQuery.ts"
import { DeviceLink } from "../../parts/Devices.tsx"
import { ask, Counted } from "../../parts/Dialog.tsx"
import { AreaField, Form, SelectField } from "../../parts/Form.tsx"
import { DeleteButton, Listing } from "../../parts/Listing.tsx"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useStored } from "../../parts/useStored.ts"
import { useUnsavedWarning } from "../../parts/useUnsavedWarning.ts"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"

type Version = Data<typeof api.configurations.listProductConfigurations>["results"][number]
type Known = Item<typeof api.configurations.listConfigurationProgress>

export const Configuration = ({ productKey }: { readonly productKey: string }) => {
  const { products: { configuration: words } } = useTexts()
  const params = { product_key: productKey }
  const query = useQuery(
    (signal) => api.configurations.listProductConfigurations({ params, signal }),
    [productKey]
  )
  return (
    <Shown query={query}>
      {({ results }) => (
        <div class="stack">
          <Card
            title={results[0] === undefined ? words.none : words.version(results[0].version)}
            actions={canWrite("configurations") && results.length > 0 && (
              <Actions productKey={productKey} versions={results.length} reload={query.reload} />
            )}
          >
            <p class="soft">{words.lead}</p>
            <Content key={productKey} productKey={productKey} stored={results[0]} reload={query.reload} />
          </Card>
          {results.length > 0 && (
            <Table
              caption={words.versions}
              columns={versionColumns()}
              rows={results}
              keyOf={({ version }) => String(version)}
            />
          )}
          {results[0] !== undefined && <Devices productKey={productKey} latest={results[0].configuration_id} />}
        </div>
      )}
    </Shown>
  )
}

/** What is stored, which one writes anew. */
const Content = (
  { productKey, reload, stored }: {
    readonly productKey: string
    readonly stored: Version | undefined
    readonly reload: () => void
  }
) => {
  const { common, products: { configuration: words } } = useTexts()
  const [{ content, format }, setDraft] = useState(draftOf(stored))
  const isChanged = (base: Version | undefined) => content !== draftOf(base).content || format !== draftOf(base).format
  const { base, newer, save } = useStored(stored, {
    idOf: (stored) => stored?.configuration_id ?? "",
    isChanged,
    take: (stored) => setDraft(draftOf(stored))
  })
  useUnsavedWarning(isChanged(base))
  const params = { product_key: productKey }
  if (!canWrite("configurations")) return stored === undefined ? null : <pre tabIndex={0}><code>{stored.content}</code></pre>
  return (
    <Form
      submit={common.save}
      disabled={base !== undefined && !isChanged(base)}
      onSubmit={async () => {
        const saved = await save(
          async () => (await api.configurations.listProductConfigurations({ params })).results[0],
          () => api.configurations.putProductConfiguration({ params, payload: { format, content } })
        )
        if (saved !== undefined) tell(words.saved(saved.version))
        reload()
      }}
    >
      <SelectField
        label={words.format}
        path="format"
        value={format}
        options={[["json", "JSON"], ["text", words.text]]}
        onChange={(format) => setDraft({ content, format })}
      />
      <AreaField label={words.content} hint={words.contentHint} path="content" value={content} onInput={(content) => setDraft({ content, format })} />
      {newer !== undefined && (
        <div class="notice warn" role="alert">
          <p>{common.changedMeanwhile}</p>
          {newer.stored === undefined ? <p>{words.none}</p> : <pre tabIndex={0}><code>{newer.stored.content}</code></pre>}
        </div>
      )}
    </Form>
  )
}

const draftOf = (stored: Version | undefined): Pick<Version, "content" | "format"> =>
  stored ?? { content: "{\n  \n}", format: "json" }

const Actions = (
  { productKey, reload, versions }: {
    readonly productKey: string
    readonly versions: number
    readonly reload: () => void
  }
) => {
  const { products: { configuration: words } } = useTexts()
  const params = { product_key: productKey }
  const push = async () => {
    await api.configurations.pushProductConfiguration({ params })
    tell(words.pushed)
  }
  return (
    <>
      <button
        type="button"
        class="button"
        onClick={() =>
          ask({
            title: words.pushTitle,
            body: (
              <Counted
                read={(signal) =>
                  api.devices.listDevices({ query: { ...params, status: "online", page_size: 1 }, signal })}
              >
                {({ total }) => words.pushBody(formatNumber(total))}
              </Counted>
            ),
            action: words.push,
            run: push
          })}
      >
        {words.push}
      </button>
      <DeleteButton
        title={words.removeTitle}
        body={words.removeBody(formatNumber(versions))}
        remove={() => api.configurations.deleteProductConfiguration({ params })}
        onDeleted={reload}
      />
    </>
  )
}

const versionColumns = (): ReadonlyArray<Column<Version>> => {
  const { common, products: { configuration: words } } = texts()
  return [
    { id: "version", title: words.number, kind: "tight", cell: ({ version }) => version },
    { id: "format", title: words.format, kind: "tight", cell: ({ format }) => format },
    { id: "size", title: words.size, kind: "number", cell: ({ size }) => formatNumber(size) },
    {
      id: "file",
      title: words.content,
      cell: ({ url, version }) => <a href={url} download={`configuration-${version}`}>{common.download}</a>
    },
    { id: "created", title: common.created, cell: ({ created_at }) => <Time at={created_at} /> }
  ]
}

/** Which devices have heard of it, and which have confirmed it. */
const Devices = ({ latest, productKey }: { readonly productKey: string; readonly latest: string }) => {
  const { products: { configuration: words } } = useTexts()
  const url = useUrl()
  const query = usePolledQuery(
    (signal) =>
      api.configurations.listConfigurationProgress({
        params: { product_key: productKey },
        query: { page: url.page, page_size: 25 },
        signal
      }),
    [productKey, url.page],
    5
  )
  return (
    <Card title={words.devices}>
      <Listing query={query} empty={<p class="soft">{words.noDevices}</p>}>
        {(rows) => (
          <Table
            caption={words.devices}
            columns={deviceColumns(latest)}
            rows={rows}
            keyOf={({ device_id }) => device_id}
          />
        )}
      </Listing>
    </Card>
  )
}

const deviceColumns = (latest: string): ReadonlyArray<Column<Known>> => {
  const { common, products: { configuration: words } } = texts()
  return [
    {
      id: "device",
      title: common.deviceId,
      cell: ({ device_id }) => <code><DeviceLink id={device_id} name={device_id} /></code>
    },
    {
      id: "state",
      title: common.status,
      cell: ({ state }) => <Badge mood={state === "applied" ? "good" : "busy"}>{words.states[state] ?? state}</Badge>
    },
    {
      id: "which",
      title: words.which,
      cell: ({ configuration_id }) => configuration_id === latest ? words.latest : words.another
    },
    { id: "at", title: common.time, kind: "tight", cell: ({ at }) => <Time at={at} /> }
  ]
}
