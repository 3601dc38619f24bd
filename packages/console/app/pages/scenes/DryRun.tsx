/**
 * What an event would do, judged by live values; nothing is done.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Body, Data } from "../../api/Operations.ts"
import { canWrite, may } from "../../api/session.ts"
import { ProductField, useProducts } from "../../parts/Devices.tsx"
import { ObjectField, objectOf } from "../../parts/Fields.tsx"
import { Form, SelectField, TextField } from "../../parts/Form.tsx"
import { Card, Empty } from "../../parts/Page.tsx"
import { useTexts } from "../../text/text.ts"
import type { StoredScene } from "./draft.ts"
import { type Finding, Findings } from "./Findings.tsx"

type Sample = Body<typeof api.scenes.explainScene>
type SampleType = Sample["type"]

export const DryRun = (props: { readonly scene: StoredScene }) => {
  const { common } = useTexts()
  return canWrite("scenes")
    ? <DryRunForm {...props} />
    : <Empty title={may("operator") ? common.notByKey : common.needsRole(common.roles.operator)} />
}

const DryRunForm = ({ scene }: { readonly scene: StoredScene }) => {
  const { common, scenes } = useTexts()
  const { dry, fields } = scenes
  const products = useProducts()
  const [first] = scene.triggers
  const watched = (first?.params ?? {}) as Readonly<Record<string, unknown>>
  const [form, setForm] = useState({
    type: typeOf(first?.URI),
    product: String(watched["product_key"] ?? ""),
    device: watched["device_name"] === "*" ? "" : String(watched["device_name"] ?? ""),
    event: String(watched["event_id"] ?? ""),
    status: "online" as "online" | "offline",
    values: "{}"
  })
  const [explanation, setExplanation] = useState<Data<typeof api.scenes.explainScene>>()
  const change = (changes: Partial<typeof form>) => setForm({ ...form, ...changes })
  const values = objectOf(form.values)
  const hasValues = form.type === "property" || form.type === "event"
  const sample = (): Sample => {
    const device = { product_key: form.product, device_name: form.device }
    switch (form.type) {
      case "property":
        return { type: "property", ...device, properties: values! }
      case "event":
        return { type: "event", ...device, event_id: form.event, value: values! }
      case "status":
        return { type: "status", ...device, status: form.status }
      case "cron":
        return { type: "cron" }
    }
  }
  const explain = async () => {
    setExplanation(undefined)
    setExplanation(await api.scenes.explainScene({ params: { id: scene.id }, payload: sample() }))
  }
  return (
    <div class="halves">
      <Card title={scenes.tabs.dry}>
        <p class="soft">{dry.lead} {dry.save}</p>
        <Form
          submit={dry.check}
          disabled={hasValues && values === undefined}
          onSubmit={explain}
        >
          <SelectField
            label={dry.type}
            path="type"
            value={form.type}
            options={Object.entries(dry.types) as ReadonlyArray<[SampleType, string]>}
            onChange={(type) => change({ type })}
          />
          {form.type !== "cron" && (
            <>
              <ProductField
                label={common.productLabel}
                path="product_key"
                emptyTitle={common.chooseProduct}
                products={products}
                value={form.product}
                onChange={(product) => change({ product })}
              />
              <TextField
                label={fields.device_name}
                path="device_name"
                value={form.device}
                onInput={(device) => change({ device })}
              />
            </>
          )}
          {form.type === "event" && (
            <TextField
              label={fields.event_id}
              path="event_id"
              value={form.event}
              onInput={(event) => change({ event })}
            />
          )}
          {form.type === "status" && (
            <SelectField
              label={fields.status}
              value={form.status}
              options={[["online", common.deviceStatus.online], ["offline", common.deviceStatus.offline]]}
              onChange={(status) => change({ status })}
            />
          )}
          {hasValues && (
            <ObjectField
              label={dry.values}
              path={form.type === "event" ? "value" : "properties"}
              rows={4}
              value={form.values}
              onInput={(values) => change({ values })}
            />
          )}
        </Form>
      </Card>
      {explanation !== undefined && (
        <Card title={explanation.fires ? dry.fires : dry.stays}>
          <div class="stack" role="status">
            <p class="wrap">{explanation.reason}</p>
            {explanation.warnings.map((warning) => <p key={warning} class="notice warn">{warning}</p>)}
            <Findings title={scenes.triggers} parts={explanation.triggers as ReadonlyArray<Finding>} />
            <Findings title={scenes.conditions} parts={explanation.conditions as ReadonlyArray<Finding>} />
            <Findings title={dry.does} parts={explanation.actions as ReadonlyArray<Finding>} />
          </div>
        </Card>
      )}
    </div>
  )
}

const typeOf = (uri: string | undefined): SampleType => {
  switch (uri) {
    case "trigger/device/event":
      return "event"
    case "trigger/device/status":
      return "status"
    case "trigger/cron":
      return "cron"
    default:
      return "property"
  }
}
