/**
 * Uploads a file and makes it a firmware of a product.
 */
import { useLocation } from "preact-iso"
import { useEffect, useRef, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Data } from "../../api/Operations.ts"
import { removeFile, type StoredFile, uploadFirmware } from "../../api/upload.ts"
import { asApiError, type Query } from "../../api/useQuery.ts"
import { ProductField } from "../../parts/Devices.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Field, Form, TextField } from "../../parts/Form.tsx"
import { Bar } from "../../parts/Small.tsx"
import { formatNumber, useTexts } from "../../text/text.ts"

export const NewFirmware = (
  { onClose, product, products }: {
    readonly product: string
    readonly products: Query<Data<typeof api.products.listProducts>>
    readonly onClose: () => void
  }
) => {
  const { common, firmware } = useTexts()
  const { route } = useLocation()
  const [productKey, setProductKey] = useState(product)
  const [file, setFile] = useState<File>()
  const [draft, setDraft] = useState({ name: "", version: "", module: "", remark: "", signature: "" })
  const [share, setShare] = useState<number>()
  // What is stored counts towards the quota of the project: a form that was refused uses it again.
  const uploaded = useRef<{ readonly file: File; readonly productKey: string; readonly stored: StoredFile }>(undefined)
  // Who closes the dialog breaks off the upload, and gets no firmware, also if it is being created.
  const closed = useRef(new AbortController())
  // Whether it is certain that no firmware has it.
  const isUnused = useRef(false)
  const discard = () => {
    if (!isUnused.current) return
    // That a file stays is nothing that anybody here could mend.
    removeFile(uploaded.current!.stored).catch(() => undefined)
    uploaded.current = undefined
    isUnused.current = false
  }
  useEffect(() => () => {
    closed.current.abort()
    discard()
  }, [])
  const upload = async (file: File): Promise<StoredFile | undefined> => {
    const before = uploaded.current
    if (before !== undefined && before.file === file && before.productKey === productKey) return before.stored
    discard()
    setShare(0)
    const stored = await uploadFirmware(productKey, file, setShare, closed.current.signal).finally(() => setShare(undefined))
    if (stored !== undefined) uploaded.current = { file, productKey, stored }
    return stored
  }
  const change = (changes: Partial<typeof draft>) => setDraft({ ...draft, ...changes })
  const percent = formatNumber(share ?? 0, { style: "percent" })
  return (
    <Dialog title={firmware.upload} onClose={onClose}>
      <Form
        submit={common.create}
        disabled={file === undefined || productKey === ""}
        onCancel={onClose}
        onSubmit={async () => {
          const stored = await upload(file!)
          if (stored === undefined) return
          isUnused.current = false
          const given = Object.entries(draft).filter(([, value]) => value !== "")
          const { id } = await api.ota.createFirmware({
            params: { product_key: productKey },
            payload: {
              ...Object.fromEntries(given) as typeof draft,
              name: draft.name,
              version: draft.version,
              oss_path: stored.filename,
              algorithms: 1,
              hash: stored.md5
            }
          }).catch((error: unknown) => {
            isUnused.current = !asApiError(error).isPassing
            if (closed.current.signal.aborted) discard()
            throw error
          })
          // It may be there although nobody waits for it any more.
          if (!closed.current.signal.aborted) return route(`/console/firmware/${id}`)
          await api.ota.deleteFirmware({ params: { firmware_id: String(id) } })
          isUnused.current = true
          discard()
        }}
      >
        <ProductField
          label={common.productLabel}
          emptyTitle={common.chooseProduct}
          required
          products={products}
          value={productKey}
          onChange={setProductKey}
        />
        <Field label={firmware.file} required>
          {(control) => (
            <input
              class="input"
              type="file"
              {...control}
              onChange={(event) => {
                setShare(undefined)
                setFile(event.currentTarget.files?.[0])
              }}
            />
          )}
        </Field>
        <TextField
          label={firmware.name}
          path="name"
          required
          value={draft.name}
          onInput={(name) => change({ name })}
        />
        <TextField
          label={firmware.version}
          hint={firmware.versionHint}
          path="version"
          required
          value={draft.version}
          onInput={(version) => change({ version })}
        />
        <TextField
          label={firmware.module}
          hint={firmware.moduleHint}
          path="module"
          value={draft.module}
          onInput={(module) => change({ module })}
        />
        <TextField
          label={firmware.signature}
          hint={firmware.signatureHint}
          path="signature"
          value={draft.signature}
          onInput={(signature) => change({ signature: signature.trim() })}
        />
        <TextField
          label={firmware.remark}
          path="remark"
          value={draft.remark}
          onInput={(remark) => change({ remark })}
        />
        {share !== undefined && (
          <div role="status">
            {firmware.uploading(percent)}
            <Bar
              label={firmware.file}
              parts={[
                { title: percent, count: share, mood: "busy" },
                { title: common.none, count: 1 - share, mood: "free" }
              ]}
            />
          </div>
        )}
      </Form>
    </Dialog>
  )
}
