/**
 * Creates a group, or changes one.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Body } from "../../api/Operations.ts"
import { ProductField, useProducts } from "../../parts/Devices.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { ObjectField, objectOf, TagsField, tagsOf } from "../../parts/Fields.tsx"
import { Form, SelectField, TextField } from "../../parts/Form.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"
import type { GroupData } from "./Groups.tsx"

type Query = NonNullable<Body<typeof api.deviceGroups.createDeviceGroup>["query"]>

export const GroupForm = (
  { group, onClose, onSaved }: {
    /** Undefined: a new one. */
    readonly group?: GroupData
    readonly onClose: () => void
    readonly onSaved: () => void
  }
) => {
  const { common, groups } = useTexts()
  const close = useClose(onClose)
  // Somebody else may change it meanwhile: what one has not touched is theirs.
  const [name, setName] = useState<string>()
  const [desc, setDesc] = useState<string>()
  const [kind, setKind] = useState<"static" | "dynamic">(group?.type ?? "static")
  const [changed, setChanged] = useState<Partial<QueryTexts>>({})
  const query = { ...textsOf(group?.query ?? {}), ...changed }
  const save = async () => {
    if (group === undefined) {
      await api.deviceGroups.createDeviceGroup({
        payload: { name: name ?? "", desc: desc ?? "", ...kind === "dynamic" ? { query: queryOf(query) } : {} }
      })
    } else {
      const params = { group_id: String(group.group_id) }
      await api.deviceGroups.changeDeviceGroup({
        params,
        payload: {
          ...name === undefined ? {} : { name },
          ...desc === undefined ? {} : { desc },
          ...Object.keys(changed).length === 0 ? {} : { query: await changedQuery(params, changed) }
        }
      })
    }
    tell(common.saved)
    onSaved()
    close()
  }
  return (
    <Dialog title={group?.name ?? groups.create} onClose={onClose}>
      <Form
        submit={group === undefined ? common.create : common.save}
        disabled={kind === "dynamic" &&
          (changed.reported !== undefined && objectOf(changed.reported) === undefined ||
            changed.tags !== undefined && tagsOf(changed.tags) === undefined)}
        onCancel={onClose}
        onSubmit={save}
      >
        <TextField label={common.name} path="name" required value={name ?? group?.name ?? ""} onInput={setName} />
        <TextField label={common.description} path="desc" value={desc ?? group?.desc ?? ""} onInput={setDesc} />
        <SelectField
          label={groups.kind}
          hint={groups.kindHints[kind]}
          disabled={group !== undefined}
          value={kind}
          options={[["static", groups.kinds.static], ["dynamic", groups.kinds.dynamic]]}
          onChange={setKind}
        />
        {kind === "dynamic" && <QueryFields query={query} onChange={(changes) => setChanged({ ...changed, ...changes })} />}
      </Form>
    </Dialog>
  )
}

type QueryTexts = Readonly<Record<"product" | "batch" | "status" | "tags" | "keyword" | "reported", string>>

const QueryFields = (
  { onChange, query }: { readonly query: QueryTexts; readonly onChange: (changes: Partial<QueryTexts>) => void }
) => {
  const { common, devices, groups } = useTexts()
  const products = useProducts()
  return (
    <>
      <ProductField
        label={common.productLabel}
        emptyTitle={common.anyProduct}
        path="query.product_key"
        products={products}
        value={query.product}
        onChange={(product) => onChange({ product })}
      />
      <SelectField
        label={common.status}
        path="query.status"
        value={query.status}
        options={[["", common.all], ...Object.entries(common.deviceStatus)]}
        onChange={(status) => onChange({ status })}
      />
      <TextField
        label={devices.batch.id}
        path="query.batch_id"
        type="number"
        min={1}
        value={query.batch}
        onInput={(batch) => onChange({ batch })}
      />
      <TextField
        label={devices.search}
        path="query.keyword"
        value={query.keyword}
        onInput={(keyword) => onChange({ keyword })}
      />
      <TagsField
        label={devices.tags}
        path="query.tags"
        value={query.tags}
        onInput={(tags) => onChange({ tags })}
      />
      <ObjectField
        label={groups.reported}
        hint={groups.reportedHint}
        path="query.reported"
        value={query.reported}
        onInput={(reported) => onChange({ reported })}
      />
    </>
  )
}

const textsOf = ({ batch_id, keyword = "", product_key = "", reported = {}, status, tags = {} }: Query): QueryTexts => ({
  product: product_key,
  batch: batch_id === undefined ? "" : String(batch_id),
  status: status ?? "",
  keyword,
  tags: Object.entries(tags).map((tag) => tag.join(":")).join("\n"),
  reported: JSON.stringify(reported, null, 2)
})

/** The query that is stored now, with what is changed of it. The field cannot show all tags: others stay as they are. */
const changedQuery = async (params: { readonly group_id: string }, changed: Partial<QueryTexts>): Promise<Query> => {
  const { query } = await api.deviceGroups.getDeviceGroup({ params })
  const { tags, ...rest } = query ?? {}
  const next = queryOf({ ...textsOf(rest), ...changed })
  return changed.tags === undefined && tags !== undefined ? { ...next, tags } : next
}

/** What is empty is no condition. */
const queryOf = ({ batch, keyword, product, reported, status, tags }: QueryTexts): Query => {
  const values = objectOf(reported) ?? {}
  return {
    ...product === "" ? {} : { product_key: product },
    ...batch === "" ? {} : { batch_id: Number(batch) },
    ...status === "" ? {} : { status: status as NonNullable<Query["status"]> },
    ...keyword === "" ? {} : { keyword },
    ...tags.trim() === "" ? {} : { tags: tagsOf(tags) },
    ...Object.keys(values).length === 0 ? {} : { reported: values }
  }
}
