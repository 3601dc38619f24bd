/**
 * The key with which the firmware of a product has to be signed.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { AreaField, Form } from "../../parts/Form.tsx"
import { DeleteButton } from "../../parts/Listing.tsx"
import { Card, Facts } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Time } from "../../parts/Small.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"

export const SigningKey = ({ productKey }: { readonly productKey: string }) => {
  const { common, products: { signing: words } } = useTexts()
  const [isSetting, setSetting] = useState(false)
  const params = { product_key: productKey }
  const query = useQuery((signal) => api.ota.getSigningKey({ params, signal }), [productKey])
  return (
    <Shown query={query}>
      {(key) => (
        <Card
          title={words.title}
          actions={canWrite("ota", "admin") && (
            <>
              <button type="button" class="button small" onClick={() => setSetting(true)}>{words.set}</button>
              {"key_id" in key && (
                <DeleteButton
                  title={words.removeTitle}
                  body={words.removeBody}
                  remove={() => api.ota.removeSigningKey({ params })}
                  onDeleted={query.reload}
                />
              )}
            </>
          )}
        >
          {"key_id" in key
            ? (
              <Facts
                facts={[
                  [words.id, <code class="wrap">{key.key_id}</code>],
                  [words.algorithm, key.algorithm],
                  [common.created, <Time at={key.created_at} />]
                ]}
              />
            )
            : <p class="soft">{words.none}</p>}
          {isSetting && <SetKey productKey={productKey} onClose={() => setSetting(false)} onSaved={query.reload} />}
        </Card>
      )}
    </Shown>
  )
}

const SetKey = (
  { onClose, onSaved, productKey }: {
    readonly productKey: string
    readonly onClose: () => void
    readonly onSaved: () => void
  }
) => {
  const { common, products: { signing: words } } = useTexts()
  const close = useClose(onClose)
  const [key, setKey] = useState("")
  return (
    <Dialog title={words.set} onClose={onClose}>
      <Form
        submit={words.set}
        onCancel={onClose}
        onSubmit={async () => {
          await api.ota.setSigningKey({ params: { product_key: productKey }, payload: { public_key: key } })
          tell(common.saved)
          onSaved()
          close()
        }}
      >
        <p>{words.setBody}</p>
        <AreaField label={words.key} hint={words.keyHint} path="public_key" required value={key} onInput={setKey} />
      </Form>
    </Dialog>
  )
}
