/**
 * Why a device cannot connect, and what it writes into its log.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { SelectField } from "../../parts/Form.tsx"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Ago, Badge } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { texts as currentTexts, useTexts } from "../../text/text.ts"
import type { TabProps } from "./DeviceTab.ts"
import { EventList } from "./EventsTab.tsx"

type Refusal = Data<typeof api.devices.listConnectRefusals>["results"][number]

export const DiagnosisTab = (props: TabProps) => (
  <div class="stack">
    <Refusals {...props} />
    <Logs {...props} />
  </div>
)

const Refusals = ({ device }: TabProps) => {
  const { device: { diagnosis } } = useTexts()
  const query = usePolledQuery(
    (signal) => api.devices.listConnectRefusals({ params: { device_id: device.device_id }, signal }),
    [device.device_id],
    10
  )
  return (
    <Card title={diagnosis.refusals}>
      <Shown query={query}>
        {({ results }) =>
          results.length === 0 ? <p class="soft">{diagnosis.noRefusals}</p> : (
            <>
              <p class="soft">{diagnosis.refusalsHint}</p>
              <Table
                caption={diagnosis.refusals}
                columns={refusalColumns()}
                rows={results}
                keyOf={({ address, reason, return_code }) => `${address} ${reason} ${return_code}`}
              />
            </>
          )}
      </Shown>
    </Card>
  )
}

const refusalColumns = (): ReadonlyArray<Column<Refusal>> => {
  const { device: { diagnosis } } = currentTexts()
  return [
    { id: "reason", title: diagnosis.reason, cell: ({ reason }) => <span class="wrap">{reason}</span> },
    { id: "times", title: diagnosis.times, kind: "number", cell: ({ times }) => times },
    { id: "last", title: diagnosis.last, kind: "tight", cell: ({ time }) => <Ago at={time} /> },
    { id: "first", title: diagnosis.first, kind: "tight", cell: ({ first_time }) => <Ago at={first_time} /> },
    { id: "address", title: diagnosis.address, cell: ({ address }) => <code>{address}</code> },
    { id: "code", title: diagnosis.returnCode, kind: "number", cell: ({ return_code }) => return_code }
  ]
}

const Logs = ({ device, model, reload }: TabProps) => {
  const { common, device: { diagnosis } } = useTexts()
  const [kind, setKind] = useState<"log" | "diag">("log")
  const isOn = device.diagnosis_enabled
  const toggle = async () => {
    await api.devices.setDeviceDiagnosis({ params: { device_id: device.device_id }, payload: { enabled: !isOn } })
    tell(common.saved)
    reload()
  }
  return (
    <Card
      title={diagnosis.logs}
      actions={
        <>
          <Badge mood={isOn ? "good" : "plain"}>{isOn ? diagnosis.on : diagnosis.off}</Badge>
          {canWrite("devices") && (
            <button type="button" class="button small" onClick={() => void toggle().catch(tellFailure)}>
              {isOn ? diagnosis.turnOff : diagnosis.turnOn}
            </button>
          )}
        </>
      }
    >
      <p class="soft">{diagnosis.logsHint}</p>
      <div class="filters"><SelectField
        label={diagnosis.kind}
        value={kind}
        options={[["log", diagnosis.kinds.log], ["diag", diagnosis.kinds.diag]]}
        onChange={setKind}
      /></div>
      <EventList key={kind} deviceId={device.device_id} eventId={kind} model={model} />
    </Card>
  )
}
