/**
 * Trying a firmware on a few devices.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { DeviceLink } from "../../parts/Devices.tsx"
import { ask, Dialog } from "../../parts/Dialog.tsx"
import { ListField, listOf } from "../../parts/Fields.tsx"
import { Form } from "../../parts/Form.tsx"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Table } from "../../parts/Table.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"
import { RecordStatus } from "./states.tsx"

const verifying = 1

export const Verification = (
  { firmware: { id, product_key, status }, reload }: {
    readonly firmware: Data<typeof api.ota.getFirmware>
    readonly reload: () => void
  }
) => {
  const { common, firmware: { campaign, verify } } = useTexts()
  const [isStarting, setStarting] = useState(false)
  const params = { firmware_id: String(id) }
  const query = useQuery(
    (signal) => api.ota.getVerifyTask({ params, query: { page_size: 10 }, signal }),
    [id, status]
  )
  useLive({ product_key, types: ["upgrade"] }, query.reload)
  const askDecide = (taskId: number, result: boolean) =>
    ask({
      title: result ? verify.passTitle : verify.failTitle,
      body: result ? verify.passBody : verify.failBody,
      action: result ? verify.passed : verify.failed,
      danger: !result,
      run: () => api.ota.decideVerifyTask({ params: { task_id: String(taskId) }, payload: { result } }).then(reload)
    })
  const canStart = status === 0 || status === 3 || status === 4
  return (
    <Card
      title={verify.title}
      actions={canWrite("ota") && canStart && (
        <button type="button" class="button" onClick={() => setStarting(true)}>{verify.start}</button>
      )}
    >
      <p class="soft">{verify.body}</p>
      <Shown query={query}>
        {({ results, task_id }) =>
          task_id === 0 ? <p>{verify.none}</p> : (
            <>
              <Table
                caption={verify.caption}
                rows={results}
                keyOf={({ device_id }) => device_id}
                columns={[
                  {
                    id: "name",
                    title: common.deviceName,
                    cell: ({ device_id, device_name }) => <DeviceLink id={device_id} name={device_name} />
                  },
                  {
                    id: "status",
                    title: common.status,
                    cell: ({ reason, status, step }) => (
                      <>
                        <RecordStatus status={status} /> {step > 0 && `${step} %`} <span class="soft">{reason}</span>
                      </>
                    )
                  },
                  { id: "runs", title: campaign.runs, cell: ({ version }) => version }
                ]}
              />
              {status === verifying && canWrite("ota") && (
                <div class="row end">
                  <button type="button" class="button danger" onClick={() => askDecide(task_id, false)}>
                    {verify.failed}
                  </button>
                  <button type="button" class="button primary" onClick={() => askDecide(task_id, true)}>
                    {verify.passed}
                  </button>
                </div>
              )}
            </>
          )}
      </Shown>
      {isStarting && (
        <Start
          params={params}
          onClose={() => setStarting(false)}
          onStarted={reload}
        />
      )}
    </Card>
  )
}

const Start = (
  { onClose, onStarted, params }: {
    readonly params: { readonly firmware_id: string }
    readonly onClose: () => void
    readonly onStarted: () => void
  }
) => {
  const { firmware: { verify } } = useTexts()
  const close = useClose(onClose)
  const [text, setText] = useState("")
  const ids = listOf(text)
  return (
    <Dialog title={verify.start} onClose={onClose}>
      <Form
        submit={verify.start}
        disabled={ids.length === 0}
        onCancel={onClose}
        onSubmit={async () => {
          await api.ota.createVerifyTask({ params, payload: { device_ids: ids, cloud_push: true } })
          onStarted()
          close()
        }}
      >
        <ListField
          label={verify.deviceIds}
          hint={verify.deviceIdsHint}
          path="device_ids"
          value={text}
          onInput={setText}
        />
      </Form>
    </Dialog>
  )
}
