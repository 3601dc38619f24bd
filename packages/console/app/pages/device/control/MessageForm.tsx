/**
 * Sends bytes: on a user topic, or as they are to a device that speaks in bytes.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { AreaField, Form, SelectField, TextField } from "../../../parts/Form.tsx"
import { Card } from "../../../parts/Page.tsx"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { bodyOf, CallFields, type CallOptions, CallOutcome, type Outcome } from "./Call.tsx"

export const MessageForm = ({ device }: TabProps) => {
  const { control } = useTexts().device
  return (
    <>
      <Card title={control.userMessage}><UserMessage deviceId={device.device_id} /></Card>
      {device.data_format === "raw" && <Card title={control.bytes}><Bytes deviceId={device.device_id} /></Card>}
    </>
  )
}

const UserMessage = ({ deviceId }: { readonly deviceId: string }) => {
  const { control } = useTexts().device
  const [topic, setTopic] = useState("")
  const [payload, setPayload] = useState("")
  const [encoding, setEncoding] = useState<"utf8" | "base64">("utf8")
  const [options, setOptions] = useState<CallOptions>({ wait: "", ttl: "" })
  const [outcome, setOutcome] = useState<Outcome>()
  const send = async () => {
    setOutcome(undefined)
    setOutcome(
      await api.commands.sendUserMessage({
        params: { device_id: deviceId },
        payload: { topic, payload, encoding, ...bodyOf(options) }
      })
    )
  }
  return (
    <>
      <Form submit={control.sendMessage} disabled={topic === ""} onSubmit={send}>
        <TextField label={control.topic} path="topic" hint={control.topicHint} required value={topic} onInput={setTopic} />
        <AreaField label={control.payload} path="payload" rows={3} value={payload} onInput={setPayload} />
        <SelectField
          label={control.encoding}
          path="encoding"
          value={encoding}
          options={[["utf8", control.encodings.utf8], ["base64", "Base64"]]}
          onChange={setEncoding}
        />
        <CallFields options={options} onChange={setOptions} />
      </Form>
      {outcome !== undefined && <CallOutcome deviceId={deviceId} outcome={outcome} />}
    </>
  )
}

const Bytes = ({ deviceId }: { readonly deviceId: string }) => {
  const { control } = useTexts().device
  const [data, setData] = useState("")
  const [options, setOptions] = useState<CallOptions>({ wait: "", ttl: "" })
  const [outcome, setOutcome] = useState<Outcome>()
  const send = async () => {
    setOutcome(undefined)
    setOutcome(
      await api.commands.sendRaw({
        params: { device_id: deviceId },
        payload: { data: data.replace(/\s/g, ""), ...bodyOf({ ...options, wait: "" }) }
      })
    )
  }
  return (
    <>
      <Form
        submit={control.sendBytes}
        disabled={data === ""}
        onSubmit={send}
      >
        <AreaField label={control.hex} path="data" rows={3} value={data} onInput={setData} />
        <CallFields options={options} canWait={false} onChange={setOptions} />
      </Form>
      {outcome !== undefined && <CallOutcome deviceId={deviceId} outcome={outcome} />}
    </>
  )
}
