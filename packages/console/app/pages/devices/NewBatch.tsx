/**
 * Creates many devices, with their progress in view.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Bar } from "../../parts/Small.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useIsGone } from "../../parts/useIsGone.ts"
import { formatNumber, useTexts } from "../../text/text.ts"

/** What the API creates at once. */
const largest = 10_000
const most = 100_000

export const NewBatch = (
  { onClose, onCreated, productKey }: {
    readonly productKey: string
    readonly onClose: () => void
    readonly onCreated: () => void
  }
) => {
  const { common, devices } = useTexts()
  const close = useClose(onClose)
  const isGone = useIsGone()
  const [count, setCount] = useState("100")
  const [desc, setDesc] = useState("")
  const [done, setDone] = useState(0)
  const total = Number(count)
  const isValid = Number.isInteger(total) && total > 0 && total <= most
  const create = async () => {
    // What has been created stays when one of the batches fails: the next try goes on there.
    for (let created = done; created < total;) {
      const num = Math.min(largest, total - created)
      await api.batches.createBatch({ params: { product_key: productKey }, payload: { num, desc } })
      created += num
      setDone(created)
      onCreated()
      // Who closes the dialog gets no more.
      if (isGone.current) return tell(devices.batch.progress(formatNumber(created), formatNumber(total)))
    }
    close()
  }
  return (
    <Dialog title={devices.createBatch} onClose={onClose}>
      <Form submit={common.create} disabled={!isValid} onCancel={onClose} onSubmit={create}>
        <TextField
          label={devices.batch.count}
          hint={devices.batch.countHint}
          path="num"
          type="number"
          min={1}
          max={most}
          required
          value={count}
          onInput={setCount}
        />
        <TextField label={devices.batch.desc} path="desc" value={desc} onInput={setDesc} />
        {done > 0 && (
          <div role="status">
            {devices.batch.progress(formatNumber(done), formatNumber(total))}
            <Bar
              label={devices.createBatch}
              parts={[
                { title: devices.batch.devices, count: done, mood: "busy" },
                { title: common.none, count: Math.max(0, total - done), mood: "free" }
              ]}
            />
          </div>
        )}
      </Form>
    </Dialog>
  )
}
