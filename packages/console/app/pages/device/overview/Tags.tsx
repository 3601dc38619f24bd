/**
 * The tags of a device.
 */
import { useRef, useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { canWrite, ownProducts } from "../../../api/session.ts"
import { Dialog } from "../../../parts/Dialog.tsx"
import { Form, TextField } from "../../../parts/Form.tsx"
import { Card } from "../../../parts/Page.tsx"
import { tell } from "../../../parts/toasts.tsx"
import { useClose } from "../../../parts/useClose.ts"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"

export const Tags = ({ device, reload }: TabProps) => {
  const { device: { tags: texts } } = useTexts()
  const [isEditing, setEditing] = useState(false)
  const tags = Object.entries(device.tags)
  return (
    <Card
      title={texts.title}
      actions={canWrite("devices") &&
        <button type="button" class="button small" onClick={() => setEditing(true)}>{texts.edit}</button>}
    >
      {tags.length === 0
        ? <p class="soft">{texts.empty}</p>
        : (
          <ul class="row">
            {tags.map(([key, value]) => (
              <li key={key}>
                {/* In a filter, the key ends at the first colon: one that has a colon cannot be looked for. */}
                {key.includes(":")
                  ? <span class="tag wrap">{key}: {value}</span>
                  : (
                    <a class="tag wrap" href={taggedHref(`${key}:${value}`, device.product_key)}>{key}: {value}</a>
                  )}
              </li>
            ))}
          </ul>
        )}
      {isEditing && <EditTags device={device} reload={reload} onClose={() => setEditing(false)} />}
    </Card>
  )
}

/** The devices that have a tag. A key that is limited to products lists those of one at a time. */
const taggedHref = (tag: string, product: string): string =>
  `/console/devices?${new URLSearchParams(ownProducts.value === undefined ? { tag } : { product, tag })}`

type TagSet = Readonly<Record<string, string>>

/** The tags that are stored, with what somebody has changed from `before` to `after`: others may have changed more. */
const changed = (stored: TagSet, before: TagSet, after: TagSet): TagSet =>
  Object.fromEntries([
    ...Object.entries(stored).filter(([key]) => !Object.hasOwn(before, key) || Object.hasOwn(after, key)),
    ...Object.entries(after).filter(([key, value]) => !Object.hasOwn(before, key) || before[key] !== value)
  ])

const EditTags = (
  { device, onClose, reload }: Pick<TabProps, "device" | "reload"> & { readonly onClose: () => void }
) => {
  const { common, device: { tags: texts } } = useTexts()
  const close = useClose(onClose)
  const [before] = useState(device.tags)
  const add = useRef<HTMLButtonElement>(null)
  const [rows, setRows] = useState<ReadonlyArray<readonly [key: string, value: string]>>([
    ...Object.entries(device.tags),
    ["", ""]
  ])
  const issues = rows.map(([key, value], index) =>
    key === ""
      ? value === "" ? undefined : texts.keyMissing
      : rows.findIndex(([other]) => other === key) < index
      ? texts.keyTwice
      : undefined
  )
  const setRow = (index: number, row: readonly [string, string]) => setRows(rows.with(index, row))
  return (
    <Dialog title={texts.edit} onClose={onClose}>
      <Form
        submit={common.save}
        disabled={issues.some((issue) => issue !== undefined)}
        onCancel={onClose}
        onSubmit={async () => {
          const params = { device_id: device.device_id }
          const { device_info: stored } = await api.devices.getDevice({ params })
          const tags = changed(stored.tags, before, Object.fromEntries(rows.filter(([key]) => key !== "")))
          await api.devices.setDeviceTags({ params, payload: { tags } })
          tell(common.saved)
          reload()
          close()
        }}
      >
        {rows.map(([key, value], index) => (
          <div class="tag-row" key={index}>
            <TextField
              label={texts.key(index + 1)}
              path={`tags.${key}`}
              issue={issues[index]}
              value={key}
              onInput={(key) => setRow(index, [key, value])}
            />
            <TextField label={texts.value(index + 1)} value={value} onInput={(value) => setRow(index, [key, value])} />
            <button
              type="button"
              class="button"
              aria-label={texts.remove(index + 1)}
              onClick={() => {
                // The next row takes the place of this one; after the last there is none.
                if (index === rows.length - 1) add.current?.focus()
                setRows(rows.filter((_, other) => other !== index))
              }}
            >
              ×
            </button>
          </div>
        ))}
        <div>
          <button type="button" class="button small" ref={add} onClick={() => setRows([...rows, ["", ""]])}>
            {texts.add}
          </button>
        </div>
      </Form>
    </Dialog>
  )
}
