/**
 * Plans a campaign: which devices, how fast, when it stops; and says what it will
 * touch before it starts.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Body, Data } from "../../api/Operations.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { ListField, listOf } from "../../parts/Fields.tsx"
import { CheckField, Form, SelectField, TextField } from "../../parts/Form.tsx"
import { GroupField } from "../../parts/GroupField.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, useTexts } from "../../text/text.ts"
import { CampaignPlan, type Scope } from "./CampaignPlan.tsx"

type Draft = Body<typeof api.ota.createUpgradeTask>
type FirmwareData = Data<typeof api.ota.getFirmware>

export const CampaignWizard = (
  { firmware, onClose }: { readonly firmware: FirmwareData; readonly onClose: () => void }
) => {
  const { firmware: { campaigns } } = useTexts()
  const goTo = useGoTo()
  const [scope, setScope] = useState<Scope>("all")
  const [group, setGroup] = useState("")
  const [devices, setDevices] = useState("")
  const [form, setForm] = useState({
    push: true,
    dynamic: false,
    confirm: false,
    rate: "1000",
    minutes: "60",
    retries: "1",
    abort: "20",
    abortMin: "10",
    stages: "",
    stageSuccess: "",
    protocol: "https" as "https" | "mqtt"
  })
  const change = (changes: Partial<typeof form>) => setForm({ ...form, ...changes })
  const ids = listOf(devices)
  const number = (
    field: keyof typeof form,
    label: string,
    path: string,
    { hint, required = false }: { readonly hint?: string; readonly required?: boolean } = {}
  ) => (
    <TextField
      label={label}
      path={path}
      type="number"
      min={0}
      required={required}
      {...hint === undefined ? {} : { hint }}
      value={String(form[field])}
      onInput={(value) => change({ [field]: value })}
    />
  )
  const draft = (): Draft => ({
    scope_mode: scope === "all" ? 0 : 1,
    ...scope === "group" ? { group_id: Number(group) } : {},
    ...scope === "devices" ? { device_ids: ids } : {},
    cloud_push: form.push,
    dynamic: scope === "all" && form.dynamic,
    need_app_confirm: form.confirm,
    maximum_per_minute: Number(form.rate),
    timeout: Number(form.minutes) * 60,
    retry_count: Number(form.retries),
    download_protocol: form.protocol,
    ...form.abort === ""
      ? {}
      : { abort_threshold_percent: Number(form.abort), abort_min_executed: Number(form.abortMin) },
    ...form.stages.trim() === "" ? {} : { stages: listOf(form.stages).map(Number) },
    ...form.stageSuccess === "" ? {} : { stage_success_percent: Number(form.stageSuccess) }
  })
  return (
    <Dialog title={campaigns.create} onClose={onClose} wide>
      <Form
        submit={campaigns.start}
        disabled={scope === "group" && group === "" || scope === "devices" && ids.length === 0}
        onCancel={onClose}
        onSubmit={async () => {
          const { device_count, reason, task_id } = await api.ota.createUpgradeTask({
            params: { firmware_id: String(firmware.id) },
            payload: draft()
          })
          tell(device_count === 0 ? campaigns.nobody(reason) : campaigns.started(formatNumber(device_count)))
          goTo(`/console/firmware/${firmware.id}/campaigns/${task_id}`)
        }}
      >
        <div class="halves">
          <div class="stack">
            <SelectField
              label={campaigns.scope}
              path="scope_mode"
              value={scope}
              options={Object.entries(campaigns.scopes) as ReadonlyArray<[Scope, string]>}
              onChange={setScope}
            />
            {scope === "group" && <GroupField value={group} onChange={setGroup} />}
            {scope === "devices" && (
              <ListField label={campaigns.scopes.devices} path="device_ids" value={devices} onInput={setDevices} />
            )}
            <div class="notice">
              <h3>{campaigns.touches}</h3>
              <CampaignPlan
                firmware={firmware}
                scope={scope}
                group={group}
                named={ids.length}
                draft={draft()}
              />
            </div>
            {scope === "all" && (
              <CheckField
                label={campaigns.dynamic}
                checked={form.dynamic}
                onChange={(dynamic) => change({ dynamic })}
              />
            )}
            <CheckField label={campaigns.push} checked={form.push} onChange={(push) => change({ push })} />
            <CheckField label={campaigns.confirm} checked={form.confirm} onChange={(confirm) => change({ confirm })} />
          </div>
          <div class="stack">
            {number("rate", campaigns.rate, "maximum_per_minute", { required: true })}
            {number("minutes", campaigns.timeout, "timeout", { hint: campaigns.timeoutHint, required: true })}
            {number("retries", campaigns.retries, "retry_count", { required: true })}
            {number("abort", campaigns.abort, "abort_threshold_percent", { hint: campaigns.abortHint })}
            {number("abortMin", campaigns.abortMin, "abort_min_executed", { required: form.abort !== "" })}
            <TextField
              label={campaigns.stages}
              hint={campaigns.stagesHint}
              path="stages"
              value={form.stages}
              onInput={(stages) => change({ stages })}
            />
            {number("stageSuccess", campaigns.stageSuccess, "stage_success_percent", { hint: campaigns.stageSuccessHint })}
            <SelectField
              label={campaigns.protocol}
              path="download_protocol"
              value={form.protocol}
              options={[["https", "HTTPS"], ["mqtt", "MQTT"]]}
              onChange={(protocol) => change({ protocol })}
            />
          </div>
        </div>
      </Form>
    </Dialog>
  )
}
