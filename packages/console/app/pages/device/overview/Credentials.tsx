/**
 * What a device proves itself with.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { canWrite, may } from "../../../api/session.ts"
import { Dialog } from "../../../parts/Dialog.tsx"
import { Form, SelectField } from "../../../parts/Form.tsx"
import { Card } from "../../../parts/Page.tsx"
import { CopyButton, Snippet, Time } from "../../../parts/Small.tsx"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { Certificates } from "./Certificates.tsx"

export const Credentials = ({ device, model, reload }: TabProps) => {
  const { device: { credentials: texts } } = useTexts()
  if (device.auth_type === "certificate") return <Certificates device={device} model={model} reload={reload} />
  return (
    <Card title={texts.title}>
      {may("operator") ? <Secret device={device} reload={reload} /> : <p class="soft">{texts.operatorsOnly}</p>}
    </Card>
  )
}

const Secret = ({ device, reload }: Pick<TabProps, "device" | "reload">) => {
  const { device: { credentials: texts } } = useTexts()
  const [isShown, setShown] = useState(false)
  const [isRotating, setRotating] = useState(false)
  return (
    <>
      <p class="row">
        {texts.secret} <code class="wrap">{isShown ? device.device_secret : "••••••••"}</code>
      </p>
      <div class="row">
        <button type="button" class="button small" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? texts.hide : texts.show}
        </button>
        <CopyButton text={device.device_secret} label={texts.copySecret} />
        <CopyButton
          text={JSON.stringify({
            product_key: device.product_key,
            device_name: device.device_name,
            device_secret: device.device_secret
          })}
          label={texts.copyTriple}
        />
        {canWrite("devices") && (
          <button type="button" class="button small danger" onClick={() => setRotating(true)}>{texts.rotate}</button>
        )}
      </div>
      {isRotating && (
        <Rotate
          deviceId={device.device_id}
          onClose={() => {
            setRotating(false)
            reload()
          }}
        />
      )}
    </>
  )
}

/** Seconds. */
const overlaps = ["0", "3600", "86400", "604800"] as const

const Rotate = ({ deviceId, onClose }: { readonly deviceId: string; readonly onClose: () => void }) => {
  const { device: { credentials: texts } } = useTexts()
  const [overlap, setOverlap] = useState<(typeof overlaps)[number]>("3600")
  const [made, setMade] = useState<{ readonly device_secret: string; readonly previous_valid_until: string }>()
  return (
    <Dialog title={texts.rotate} onClose={onClose}>
      {made === undefined
        ? (
          <Form
            submit={texts.rotate}
            danger
            onCancel={onClose}
            onSubmit={async () =>
              setMade(
                await api.devices.rotateDeviceSecret({
                  params: { device_id: deviceId },
                  payload: { overlap: Number(overlap) }
                })
              )}
          >
            <p>{texts.rotateHint}</p>
            <SelectField
              label={texts.overlap}
              path="overlap"
              value={overlap}
              options={overlaps.map((seconds) => [seconds, texts.overlaps[seconds]] as const)}
              onChange={setOverlap}
            />
          </Form>
        )
        : (
          <>
            <Snippet label={texts.secret} text={made.device_secret} />
            <p>
              {made.previous_valid_until === ""
                ? texts.previousEnded
                : <>{texts.previousUntil} <Time at={made.previous_valid_until} /></>}
            </p>
          </>
        )}
    </Dialog>
  )
}
