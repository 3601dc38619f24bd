/**
 * How long the history of a product is kept.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { formatNumber, useTexts } from "../../text/text.ts"

type Days = Data<typeof api.historyRetention.getHistoryRetention>

export const Retention = ({ productKey }: { readonly productKey: string }) => {
  const { common, products: { retention: words } } = useTexts()
  const [isEditing, setEditing] = useState(false)
  const query = useQuery(
    (signal) => api.historyRetention.getHistoryRetention({ params: { product_key: productKey }, signal }),
    [productKey]
  )
  return (
    <Card
      title={words.title}
      actions={canWrite("historyRetention") && (
        <button
          type="button"
          class="button small"
          aria-label={`${common.edit}: ${words.title}`}
          onClick={() => setEditing(true)}
        >
          {common.edit}
        </button>
      )}
    >
      <Shown query={query}>
        {(days) => (
          <>
            <p>{days.days === null ? words.byDefault(daysOf(days.default_days)) : words.own(formatNumber(days.days))}</p>
            {isEditing && (
              <EditRetention
                productKey={productKey}
                stored={days}
                onClose={() => setEditing(false)}
                onSaved={query.reload}
              />
            )}
          </>
        )}
      </Shown>
    </Card>
  )
}

const EditRetention = (
  { onClose, onSaved, productKey, stored }: {
    readonly productKey: string
    readonly stored: Days
    readonly onClose: () => void
    readonly onSaved: () => void
  }
) => {
  const { common, products: { retention: words } } = useTexts()
  const close = useClose(onClose)
  const [days, setDays] = useState(stored.days === null ? "" : String(stored.days))
  const params = { product_key: productKey }
  return (
    <Dialog title={words.title} onClose={onClose}>
      <Form
        submit={common.save}
        onCancel={onClose}
        onSubmit={async () => {
          await (days === ""
            ? api.historyRetention.deleteHistoryRetention({ params })
            : api.historyRetention.setHistoryRetention({ params, payload: { days: Number(days) } }))
          tell(common.saved)
          onSaved()
          close()
        }}
      >
        <TextField
          label={words.days}
          hint={words.daysHint(daysOf(stored.default_days))}
          path="days"
          type="number"
          min={1}
          value={days}
          onInput={setDays}
        />
        <p class="notice warn">{words.warning}</p>
      </Form>
    </Dialog>
  )
}

const daysOf = (days: number): string | undefined => days === 0 ? undefined : formatNumber(days)
