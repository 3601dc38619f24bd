/**
 * The client certificates of a device.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import type { Data } from "../../../api/Operations.ts"
import { canWrite } from "../../../api/session.ts"
import { useQuery } from "../../../api/useQuery.ts"
import { ask, Dialog } from "../../../parts/Dialog.tsx"
import { AreaField, Form, SelectField, TextField } from "../../../parts/Form.tsx"
import { Card, Empty } from "../../../parts/Page.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { Badge, download, type Mood, Time } from "../../../parts/Small.tsx"
import { type Column, Table } from "../../../parts/Table.tsx"
import { tell } from "../../../parts/toasts.tsx"
import { useIsGone } from "../../../parts/useIsGone.ts"
import { texts as currentTexts, useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"

type Certificate = Data<typeof api.certificates.listCertificates>["results"][number]

export const Certificates = ({ device }: TabProps) => {
  const { device: { certificates: texts } } = useTexts()
  const [isIssuing, setIssuing] = useState(false)
  const query = useQuery(
    (signal) => api.certificates.listCertificates({ params: { device_id: device.device_id }, signal }),
    [device.device_id]
  )
  return (
    <Card
      title={texts.title}
      actions={canWrite("certificates") &&
        <button type="button" class="button small" onClick={() => setIssuing(true)}>{texts.issue}</button>}
    >
      <Shown query={query}>
        {({ results }) =>
          results.length === 0
            ? <Empty title={texts.empty}>{texts.emptyHint}</Empty>
            : (
              <Table
                caption={texts.title}
                columns={columnsOf(device.device_id, query.reload)}
                rows={results}
                keyOf={({ serial }) => serial}
              />
            )}
      </Shown>
      {isIssuing && <Issue device={device} onIssued={query.reload} onClose={() => setIssuing(false)} />}
    </Card>
  )
}

const moods: Readonly<Record<string, Mood>> = { active: "good", expired: "plain", revoked: "bad" }

const columnsOf = (deviceId: string, reload: () => void): ReadonlyArray<Column<Certificate>> => {
  const { common, device: { certificates: texts } } = currentTexts()
  return [
    { id: "serial", title: texts.serial, cell: ({ serial }) => <code title={serial}>{serial.slice(0, 12)}…</code> },
    {
      id: "status",
      title: common.status,
      cell: ({ status }) => <Badge mood={moods[status] ?? "plain"}>{texts.states[status] ?? status}</Badge>
    },
    { id: "until", title: texts.until, cell: ({ valid_until }) => <Time at={valid_until} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: ({ certificate, serial, status }) => (
        <div class="row">
          <button
            type="button"
            class="button small"
            onClick={() => download(`${serial}.pem`, certificate, "application/x-pem-file")}
          >
            {common.download}
          </button>
          {canWrite("certificates") && status === "active" && (
            <button type="button" class="button small danger" onClick={() => askRevoke(deviceId, serial, reload)}>
              {texts.revoke}
            </button>
          )}
        </div>
      )
    }
  ]
}

const askRevoke = (deviceId: string, serial: string, reload: () => void) => {
  const { certificates: texts } = currentTexts().device
  ask({
    title: texts.revokeTitle,
    body: texts.revokeBody(serial),
    action: texts.revoke,
    danger: true,
    run: async () => {
      await api.certificates.revokeCertificate({ params: { device_id: deviceId, serial } })
      tell(texts.revoked)
      reload()
    }
  })
}

type Issued = Data<typeof api.certificates.addCertificate>

/** Says what has become of a certificate whose dialog was closed. One whose private key nobody has seen is revoked. */
const endUnseen = async (deviceId: string, { private_key, serial }: Issued) => {
  const { certificates: texts } = currentTexts().device
  if (private_key === undefined) return tell(texts.issued)
  await api.certificates.revokeCertificate({ params: { device_id: deviceId, serial } })
  tell(texts.issuedUnseen)
}

/** Seconds; the empty one leaves earlier certificates as they are. */
const overlaps = ["", "0", "86400", "604800"] as const

const Issue = (
  { device, onClose, onIssued }: Pick<TabProps, "device"> & {
    readonly onClose: () => void
    readonly onIssued: () => void
  }
) => {
  const { common, device: { certificates: texts } } = useTexts()
  const [days, setDays] = useState("365")
  const [csr, setCsr] = useState("")
  const [overlap, setOverlap] = useState<(typeof overlaps)[number]>("")
  const [issued, setIssued] = useState<Issued>()
  const isClosed = useIsGone()
  const issue = async () => {
    const made = await api.certificates.addCertificate({
      params: { device_id: device.device_id },
      payload: {
        valid_days: Number(days),
        ...csr.trim() === "" ? {} : { csr },
        ...overlap === "" ? {} : { overlap: Number(overlap) }
      },
      isUndone: true
    })
    if (isClosed.current) await endUnseen(device.device_id, made)
    setIssued(made)
    onIssued()
  }
  const save = (suffix: string, text: string) =>
    download(`${device.device_name}.${suffix}.pem`, text, "application/x-pem-file")
  return (
    <Dialog title={texts.issue} onClose={onClose}>
      {issued === undefined
        ? (
          <Form submit={texts.issue} onCancel={onClose} onSubmit={issue}>
            <TextField label={texts.days} path="valid_days" type="number" min="1" max="3650" required value={days} onInput={setDays} />
            <SelectField
              label={texts.earlier}
              path="overlap"
              value={overlap}
              options={overlaps.map((seconds) => [seconds, texts.overlaps[seconds]] as const)}
              onChange={setOverlap}
            />
            <AreaField label={texts.csr} path="csr" hint={texts.csrHint} rows={4} value={csr} onInput={setCsr} />
          </Form>
        )
        : (
          <>
            {issued.private_key !== undefined && <p class="notice warn">{texts.keyOnce}</p>}
            <div class="row">
              <button type="button" class="button" onClick={() => save("cert", issued.certificate)}>{texts.certificate}</button>
              <button type="button" class="button" onClick={() => save("ca", issued.authority)}>{texts.authority}</button>
              {issued.private_key !== undefined && (
                <button type="button" class="button primary" onClick={() => save("key", issued.private_key!)}>
                  {texts.privateKey}
                </button>
              )}
            </div>
            <div class="row end">
              <button type="button" class="button" onClick={onClose}>{common.close}</button>
            </div>
          </>
        )}
    </Dialog>
  )
}
