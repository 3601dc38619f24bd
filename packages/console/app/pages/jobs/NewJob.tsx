/**
 * Gives devices a job, and says how many it reaches before it begins.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useQuery } from "../../api/useQuery.ts"
import { ProductField, useProducts } from "../../parts/Devices.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { ListField, listOf, ObjectField, objectOf } from "../../parts/Fields.tsx"
import { Form, SelectField, TextField } from "../../parts/Form.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, useTexts } from "../../text/text.ts"

/** `deviceIds`: devices that were selected elsewhere. */
export const NewJob = (
  { deviceIds = [], onClose }: { readonly deviceIds?: ReadonlyArray<string>; readonly onClose: () => void }
) => {
  const { common, jobs } = useTexts()
  const close = useClose(onClose)
  const goTo = useGoTo()
  const products = useProducts()
  const [form, setForm] = useState({
    name: "",
    description: "",
    document: "{\n  \n}",
    timeout: "0",
    scope: "named" as "named" | "allOf",
    devices: deviceIds.join("\n"),
    product: ""
  })
  const change = (changes: Partial<typeof form>) => setForm({ ...form, ...changes })
  const document = objectOf(form.document)
  const ids = listOf(form.devices)
  const isNamed = form.scope === "named"
  const isReady = document !== undefined && (isNamed ? ids.length > 0 : form.product !== "")
  return (
    <Dialog title={jobs.create} onClose={onClose}>
      <Form
        submit={common.create}
        disabled={!isReady}
        onCancel={onClose}
        onSubmit={async () => {
          const { job_id } = await api.jobs.createJob({
            payload: {
              name: form.name,
              description: form.description,
              document: document!,
              timeout: Number(form.timeout),
              ...isNamed ? { device_ids: ids } : { product_key: form.product }
            }
          })
          tell(jobs.created)
          close()
          goTo(`/console/jobs/${job_id}`)
        }}
      >
        <TextField label={common.name} path="name" required value={form.name} onInput={(name) => change({ name })} />
        <TextField
          label={common.description}
          path="description"
          value={form.description}
          onInput={(description) => change({ description })}
        />
        <SelectField
          label={jobs.for}
          value={form.scope}
          options={[["named", jobs.named], ["allOf", jobs.allOf]]}
          onChange={(scope) => change({ scope })}
        />
        {isNamed
          ? (
            <ListField
              label={jobs.deviceIds}
              hint={jobs.deviceIdsHint}
              path="device_ids"
              value={form.devices}
              onInput={(devices) => change({ devices })}
            />
          )
          : (
            <ProductField
              label={common.productLabel}
              emptyTitle={common.chooseProduct}
              path="product_key"
              products={products}
              value={form.product}
              onChange={(product) => change({ product })}
            />
          )}
        {isNamed
          ? ids.length > 0 && <p class="notice">{jobs.reaches(formatNumber(ids.length))}</p>
          : form.product !== "" && <Reached productKey={form.product} />}
        <ObjectField
          label={jobs.document}
          hint={jobs.documentHint}
          path="document"
          value={form.document}
          onInput={(document) => change({ document })}
        />
        <TextField
          label={jobs.timeout}
          hint={jobs.timeoutHint}
          path="timeout"
          type="number"
          min={0}
          required
          value={form.timeout}
          onInput={(timeout) => change({ timeout })}
        />
      </Form>
    </Dialog>
  )
}

const Reached = ({ productKey }: { readonly productKey: string }) => {
  const { jobs } = useTexts()
  const query = useQuery(
    (signal) => api.devices.listDevices({ query: { product_key: productKey, page_size: 1 }, signal }),
    [productKey]
  )
  return <Shown query={query}>{({ total }) => <p class="notice">{jobs.reaches(formatNumber(total))}</p>}</Shown>
}
