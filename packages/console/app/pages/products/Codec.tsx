/**
 * The codec of a product whose devices speak bytes, and trying it.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Body, Data } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ObjectField, objectOf } from "../../parts/Fields.tsx"
import { AreaField, Form, SelectField } from "../../parts/Form.tsx"
import { DeleteButton } from "../../parts/Listing.tsx"
import { Card } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Time } from "../../parts/Small.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useStored } from "../../parts/useStored.ts"
import { useUnsavedWarning } from "../../parts/useUnsavedWarning.ts"
import { useTexts } from "../../text/text.ts"

type Stored = Data<typeof api.codecs.getCodec>
type Try = Body<typeof api.codecs.tryCodec>

const directions = ["reports", "receipts", "commands", "answers"] as const satisfies ReadonlyArray<Try["direction"]>

export const Codec = ({ productKey }: { readonly productKey: string }) => {
  const query = useQuery((signal) => api.codecs.getCodec({ params: { product_key: productKey }, signal }), [productKey])
  return (
    <Shown query={query}>
      {(stored) => <Editor productKey={productKey} stored={stored} reload={query.reload} />}
    </Shown>
  )
}

const Editor = (
  { productKey, reload, stored }: {
    readonly productKey: string
    readonly stored: Stored
    readonly reload: () => void
  }
) => {
  const { common, products: { codec: words } } = useTexts()
  const [text, setText] = useState(textOf(stored))
  const isChanged = (base: Stored) => text !== textOf(base)
  const { base, newer, save } = useStored(stored, {
    idOf: ({ codec, version }) => codec === null ? "" : version,
    isChanged,
    take: (stored) => setText(textOf(stored))
  })
  useUnsavedWarning(isChanged(base))
  const params = { product_key: productKey }
  const codec = objectOf(text)
  return (
    <div class="stack">
      <Card
        title={stored.codec === null ? words.none : words.version(stored.version)}
        actions={stored.codec !== null && canWrite("codecs") && (
          <DeleteButton
            title={words.removeTitle}
            body={words.removeBody}
            remove={() => api.codecs.deleteCodec({ params })}
            onDeleted={reload}
          />
        )}
      >
        <p class="soft">{words.lead}</p>
        {stored.codec !== null && <p class="soft small">{common.changed}: <Time at={stored.updated_at} /></p>}
        {canWrite("codecs")
          ? (
            <Form
              submit={common.save}
              disabled={codec === undefined}
              onSubmit={async () => {
                const saved = await save(
                  () => api.codecs.getCodec({ params }),
                  () => api.codecs.putCodec({ params, payload: { codec: codec! } })
                )
                if (saved !== undefined) {
                  setText((now) => now === text ? textOf(saved) : now)
                  tell(words.saved(saved.version))
                }
                reload()
              }}
            >
              <ObjectField label={words.description} path="codec" value={text} onInput={setText} />
              {newer !== undefined && (
                <div class="notice warn" role="alert">
                  <p>{common.changedMeanwhile}</p>
                  {newer.stored.codec === null
                    ? <p>{words.none}</p>
                    : <pre tabIndex={0}><code>{textOf(newer.stored)}</code></pre>}
                </div>
              )}
            </Form>
          )
          : <pre tabIndex={0}><code>{text}</code></pre>}
      </Card>
      {canWrite("codecs") && <Trial productKey={productKey} codec={codec} />}
    </div>
  )
}

const textOf = ({ codec }: Stored): string => JSON.stringify(codec ?? {}, null, 2)

/** Converts by what stands in the form, also before it is saved. */
const Trial = (
  { codec, productKey }: { readonly productKey: string; readonly codec: Try["codec"] }
) => {
  const { products: { codec: words } } = useTexts()
  const [direction, setDirection] = useState<Try["direction"]>("reports")
  const [hex, setHex] = useState("")
  const [message, setMessage] = useState("")
  return (
    <Card title={words.try}>
      <Form
        submit={words.convert}
        disabled={codec === undefined || (hex === "" && objectOf(message) === undefined)}
        onSubmit={async () => {
          const given = hex === "" ? { message: objectOf(message)! } : { hex }
          const made = await api.codecs.tryCodec({
            params: { product_key: productKey },
            payload: { direction, codec, ...given }
          })
          setHex(made.hex)
          setMessage(JSON.stringify(made.message, null, 2))
        }}
      >
        <SelectField
          label={words.direction}
          path="direction"
          value={direction}
          options={directions.map((id) => [id, words.directions[id]] as const)}
          onChange={setDirection}
        />
        <AreaField
          label={words.bytes}
          hint={words.bytesHint}
          path="hex"
          rows={2}
          value={hex}
          onInput={(hex) => {
            setHex(hex)
            setMessage("")
          }}
        />
        <AreaField
          label={words.message}
          hint={words.messageHint}
          path="message"
          value={message}
          onInput={(message) => {
            setMessage(message)
            setHex("")
          }}
        />
      </Form>
    </Card>
  )
}
