/**
 * Changes what is desired of a device, unless somebody else has changed it meanwhile.
 */
import { useState } from "preact/hooks"
import { ApiError } from "../../api/ApiError.ts"
import { api } from "../../api/client.ts"
import type { Query } from "../../api/useQuery.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { ObjectField, objectOf } from "../../parts/Fields.tsx"
import { Form } from "../../parts/Form.tsx"
import { type ThingModel, writableOf } from "../../parts/model/Model.ts"
import { ValueField } from "../../parts/model/ValueField.tsx"
import { Facts } from "../../parts/Page.tsx"
import { Json } from "../../parts/Small.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"
import type { Shadow } from "./useShadow.ts"

const versionConflict = 40904

/** Each report of the device makes a version too: who saves tries again when one has come between. */
const attempts = 5

type Desired = Shadow["state"]["desired"]

export const EditDesired = (
  { deviceId, model, onClose, query, shadow }: {
    readonly deviceId: string
    readonly model: ThingModel
    readonly shadow: Shadow
    readonly query: Query<Shadow>
    readonly onClose: () => void
  }
) => {
  const { common, device: { shadow: texts } } = useTexts()
  const close = useClose(onClose)
  const [known, setKnown] = useState<Desired>(shadow.state.desired)
  const [changed, setChanged] = useState<Desired>({})
  const [conflicts, setConflicts] = useState<ReadonlyArray<string>>([])
  // Of a device without a model: all that is to be desired, as JSON; `changed` has what of it is new.
  const [text, setText] = useState(() => textOf(known))
  const elements = writableOf(model)
  const save = async () => {
    const found = await saveOver(deviceId, changed, known)
    if (found !== undefined) {
      setKnown(found)
      setConflicts(differencesOf(known, found, changed))
      setText(textOf(changedFrom(found, changed)))
      return
    }
    tell(common.saved)
    query.reload()
    close()
  }
  return (
    <Dialog title={texts.edit} onClose={onClose} wide>
      <Form submit={common.save} disabled={Object.keys(changed).length === 0} onCancel={onClose} onSubmit={save}>
        <p class="soft">{texts.editHint}</p>
        {conflicts.length > 0 && (
          <div class="notice warn" role="alert">
            <p>{texts.conflict}</p>
            <Facts facts={conflicts.map((id) => [nameOf(model, id), <Json value={known[id] ?? null} />])} />
          </div>
        )}
        {elements.length === 0
          ? (
            <ObjectField
              label={texts.desired}
              path="state.desired"
              rows={4}
              value={text}
              onInput={(typed) => {
                setText(typed)
                const wanted = objectOf(typed)
                setChanged(wanted === undefined ? {} : changesOf(known, wanted))
              }}
            />
          )
          : (
            <div class="settings">
              {elements.map(({ dataType, id, name }) => (
                <div key={id} class={id in changed ? "setting chosen" : "setting"}>
                  <ValueField
                    label={name}
                    path={`state.desired.${id}`}
                    type={dataType}
                    value={id in changed ? changed[id] ?? undefined : known[id]}
                    onChange={(value) => setChanged({ ...changed, [id]: (value ?? null) as Desired[string] })}
                  />
                </div>
              ))}
            </div>
          )}
      </Form>
    </Dialog>
  )
}

const nameOf = (model: ThingModel, id: string): string => model.properties.find((one) => one.id === id)?.name ?? id

const textOf = (desired: Desired): string => JSON.stringify(desired, null, 2)

/** What `found` becomes with the changes: null leaves out. */
const changedFrom = (found: Desired, changed: Desired): Desired =>
  Object.fromEntries(Object.entries({ ...found, ...changed }).filter(([, value]) => value !== null))

/** What makes `wanted` of what is known: null for what it leaves out. */
const changesOf = (known: Desired, wanted: Desired): Desired =>
  Object.fromEntries(
    [...new Set([...Object.keys(known), ...Object.keys(wanted)])]
      .filter((id) => JSON.stringify(known[id]) !== JSON.stringify(wanted[id]))
      .map((id) => [id, wanted[id] ?? null])
  )

/** Of what one wants to change, what somebody else has changed since. What is as one wants it may be one's own. */
const differencesOf = (known: Desired, found: Desired, changed: Desired): ReadonlyArray<string> =>
  Object.keys(changed).filter((id) =>
    JSON.stringify(known[id]) !== JSON.stringify(found[id]) &&
    JSON.stringify(changed[id]) !== JSON.stringify(found[id] ?? null)
  )

/** Returns what is desired now if somebody else has changed it since `known`; then nothing is saved. */
const saveOver = async (deviceId: string, changed: Desired, known: Desired): Promise<Desired | undefined> => {
  const params = { device_id: deviceId }
  for (let attempt = 1;; attempt++) {
    const { thing_shadow: { state, version } } = await api.devices.getDeviceShadow({ params })
    if (differencesOf(known, state.desired, changed).length > 0) return state.desired
    try {
      await api.devices.updateDeviceShadow({ params, payload: { state: { desired: changed }, version } })
      return undefined
    } catch (error) {
      const isBetween = error instanceof ApiError && error.code === versionConflict
      if (!isBetween || attempt === attempts) throw error
    }
  }
}
