/**
 * Creates a product.
 */
import { useRef, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Body } from "../../api/Operations.ts"
import { canWrite } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { CheckField, Form, SelectField, TextField } from "../../parts/Form.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useGoTo } from "../../parts/useGoTo.ts"
import { useTexts } from "../../text/text.ts"

type Draft = Body<typeof api.products.createProduct>

const networks = ["wifi", "ethernet", "cellular", "lorawan", "wifi+ble-mesh", "others"] as const
const protocols = ["zigbee", "ble", "ble-mesh"] as const

export const NewProduct = ({ onClose }: { readonly onClose: () => void }) => {
  const { common, products } = useTexts()
  const goTo = useGoTo()
  const [draft, setDraft] = useState<Draft>({
    name: "",
    node_type: "direct",
    network_type: "wifi",
    validate_type: "weak",
    data_format: "json",
    auth_type: "secret",
    dynamic_register: false
  })
  const templates = useQuery((signal) => api.products.listProductTemplates({ signal }), [])
  const [templateId, setTemplateId] = useState("")
  const template = templates.data?.results.find(({ template_id }) => template_id === templateId)
  // The model of a template follows the product: when it fails, the next try goes on with the same product.
  const created = useRef<{ readonly draft: Draft; readonly productKey: string }>(undefined)
  const create = async (): Promise<string> => {
    if (created.current?.draft === draft) return created.current.productKey
    // What one has written since makes another product in its place.
    if (created.current !== undefined) {
      await api.products.deleteProduct({ params: { product_key: created.current.productKey } })
      created.current = undefined
    }
    const { product_info: { product_key: productKey } } = await api.products.createProduct({ payload: draft })
    created.current = { draft, productKey }
    tell(products.created)
    return productKey
  }
  const change = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes })
  const isSub = draft.node_type === "gateway-sub"
  return (
    <Dialog title={products.create} onClose={onClose}>
      <Form
        submit={common.create}
        onCancel={onClose}
        onSubmit={async () => {
          const productKey = await create()
          if (template !== undefined) {
            await api.thingModels.importThingModel({
              params: { product_key: productKey },
              payload: { model_type: "metadata", model_data: JSON.stringify(template.thing_model) }
            })
          }
          goTo(`/console/products/${productKey}/model`)
        }}
      >
        {canWrite("thingModels") && (
          <SelectField
            label={products.template}
            hint={template?.description}
            value={templateId}
            options={[
              ["", products.blank],
              ...(templates.data?.results ?? []).map(({ name, template_id }) => [template_id as string, name] as const)
            ]}
            onChange={(id) => {
              setTemplateId(id)
              const chosen = templates.data?.results.find(({ template_id }) => template_id === id)
              if (chosen !== undefined) change({ ...chosen.product, name: draft.name || chosen.name })
            }}
          />
        )}
        <TextField label={common.name} path="name" required value={draft.name} onInput={(name) => change({ name })} />
        <TextField
          label={common.description}
          path="description"
          value={draft.description ?? ""}
          onInput={(description) => change({ description })}
        />
        <SelectField
          label={products.nodeType}
          path="node_type"
          value={draft.node_type}
          options={Object.entries(products.nodeTypes) as ReadonlyArray<[Draft["node_type"], string]>}
          onChange={(node_type) =>
            change(
              node_type === "gateway-sub"
                ? { node_type, network_type: "", protocol_type: "zigbee", auth_type: "secret" }
                : { node_type, network_type: "wifi", protocol_type: "" }
            )}
        />
        {isSub
          ? (
            <SelectField
              label={products.protocolType}
              path="protocol_type"
              value={draft.protocol_type ?? "zigbee"}
              options={protocols.map((id) => [id, products.networks[id] ?? id] as const)}
              onChange={(protocol_type) => change({ protocol_type })}
            />
          )
          : (
            <SelectField
              label={products.networkType}
              path="network_type"
              value={draft.network_type ?? "wifi"}
              options={networks.map((id) => [id, products.networks[id] ?? id] as const)}
              onChange={(network_type) => change({ network_type })}
            />
          )}
        <SelectField
          label={products.validateType}
          path="validate_type"
          value={draft.validate_type}
          options={Object.entries(products.validateTypes) as ReadonlyArray<[Draft["validate_type"], string]>}
          onChange={(validate_type) => change({ validate_type })}
        />
        <SelectField
          label={products.dataFormat}
          path="data_format"
          value={draft.data_format}
          options={Object.entries(products.dataFormats) as ReadonlyArray<[Draft["data_format"], string]>}
          onChange={(data_format) => change({ data_format })}
        />
        {!isSub && (
          <SelectField
            label={products.authType}
            path="auth_type"
            value={draft.auth_type}
            options={Object.entries(products.authTypes) as ReadonlyArray<[Draft["auth_type"], string]>}
            onChange={(auth_type) => change({ auth_type })}
          />
        )}
        <CheckField
          label={products.register}
          checked={draft.dynamic_register === true}
          onChange={(dynamic_register) => change({ dynamic_register })}
        />
      </Form>
    </Dialog>
  )
}
