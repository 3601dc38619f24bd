/**
 * The authorities that issue client certificates of devices.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { AreaField, Form, TextField } from "../../parts/Form.tsx"
import { DeleteButton } from "../../parts/Listing.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, download, Time } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { formatNumber, texts, useTexts } from "../../text/text.ts"

type Authority = Data<typeof api.certificates.listAuthorities>["results"][number]

/** What one can send about an authority. */
type Sending = { readonly what: "verification" | "crl"; readonly authority: Authority } | { readonly what: "new" }

export const Authorities = () => {
  const { authorities } = useTexts()
  const [sending, setSending] = useState<Sending>()
  const query = useQuery((signal) => api.certificates.listAuthorities({ signal }), [])
  return (
    <div class="stack">
      {canWrite("certificates") && (
        <div class="row end">
          <button type="button" class="button primary" onClick={() => setSending({ what: "new" })}>
            {authorities.register}
          </button>
        </div>
      )}
      <Shown query={query}>
        {({ results }) =>
          results.length === 0 ? <Empty title={authorities.empty}>{authorities.emptyBody}</Empty> : (
            <Table
              caption={authorities.caption}
              columns={columnsOf(setSending, query.reload)}
              rows={results}
              keyOf={({ authority_id }) => authority_id}
            />
          )}
      </Shown>
      {sending !== undefined && (
        <Send sending={sending} onClose={() => setSending(undefined)} onSent={query.reload} />
      )}
    </div>
  )
}

const columnsOf = (
  send: (sending: Sending) => void,
  reload: () => void
): ReadonlyArray<Column<Authority>> => {
  const { authorities, common } = texts()
  return [
    {
      id: "name",
      title: common.name,
      cell: ({ kind, name, subject }) => (
        <span class="wrap">{kind === "own" ? authorities.own : name} <span class="soft small">{subject}</span></span>
      )
    },
    {
      id: "state",
      title: common.status,
      kind: "tight",
      cell: ({ state }) => (
        <Badge mood={state === "active" ? "good" : "warn"}>{authorities.states[state] ?? state}</Badge>
      )
    },
    { id: "until", title: authorities.until, kind: "tight", cell: ({ not_after }) => <Time at={not_after} /> },
    {
      id: "crl",
      title: authorities.crl,
      cell: ({ crl }) =>
        crl === null
          ? <span class="soft">{common.none}</span>
          : <>{authorities.revoked(formatNumber(crl.size))} <Time at={crl.issued_at} /></>
    },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: (authority) => (
        <div class="row">
          <button
            type="button"
            class="button"
            aria-label={`${common.download}: ${authority.name}`}
            onClick={() =>
              download(`${authority.authority_id}.pem`, authority.certificate, "application/x-pem-file")}
          >
            {common.download}
          </button>
          {canWrite("certificates") && (
            <>
              {authority.kind !== "own" && (
                <button
                  type="button"
                  class="button"
                  onClick={() =>
                    send({ what: authority.state === "pending" ? "verification" : "crl", authority })}
                >
                  {authority.state === "pending" ? authorities.verify : authorities.sendCrl}
                </button>
              )}
              <DeleteButton
                title={authorities.removeTitle(authority.kind === "own" ? authorities.own : authority.name)}
                body={authorities.removeBody}
                typed={authority.name}
                remove={() =>
                  api.certificates.removeAuthority({ params: { authority_id: authority.authority_id } })}
                onDeleted={reload}
              />
            </>
          )}
        </div>
      )
    }
  ]
}

/** A new authority, what shows that it may be used, or its revocation list. */
const Send = (
  { onClose, onSent, sending }: {
    readonly sending: Sending
    readonly onClose: () => void
    readonly onSent: () => void
  }
) => {
  const { authorities, common } = useTexts()
  const close = useClose(onClose)
  const [name, setName] = useState("")
  const [pem, setPem] = useState("")
  const title = { new: authorities.register, verification: authorities.verify, crl: authorities.sendCrl }[sending.what]
  const send = () => {
    if (sending.what === "new") return api.certificates.registerAuthority({ payload: { name, certificate: pem } })
    const params = { authority_id: sending.authority.authority_id }
    return sending.what === "verification"
      ? api.certificates.verifyAuthority({ params, payload: { certificate: pem } })
      : api.certificates.putRevocationList({ params, payload: { crl: pem } })
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        submit={title}
        onCancel={onClose}
        onSubmit={async () => {
          await send()
          tell(common.saved)
          onSent()
          close()
        }}
      >
        <p>{authorities.hints[sending.what]}</p>
        {sending.what === "verification" && <code class="wrap">{sending.authority.verification_code}</code>}
        {sending.what === "new" && (
          <TextField label={common.name} path="name" required value={name} onInput={setName} />
        )}
        <AreaField
          label={sending.what === "crl" ? authorities.crl : authorities.certificate}
          hint="PEM"
          path={sending.what === "crl" ? "crl" : "certificate"}
          required
          value={pem}
          onInput={setPem}
        />
      </Form>
    </Dialog>
  )
}
