/**
 * What is desired of a device beside what it has reported.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { canWrite } from "../../api/session.ts"
import type { Query } from "../../api/useQuery.ts"
import { ask } from "../../parts/Dialog.tsx"
import type { PropertyElement } from "../../parts/model/Model.ts"
import { ModelValue } from "../../parts/model/ModelValue.tsx"
import { Card, Empty, Facts } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Ago, Badge, Snippet } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { texts as currentTexts, useTexts } from "../../text/text.ts"
import type { TabProps } from "./DeviceTab.ts"
import { EditDesired } from "./EditDesired.tsx"
import { type Shadow, useShadow } from "./useShadow.ts"

interface Row {
  readonly id: string
  readonly element: PropertyElement | undefined
  readonly shadow: Shadow
}

export const ShadowTab = ({ device, model }: TabProps) => {
  const { common, device: { shadow: texts } } = useTexts()
  const query = useShadow(device.device_id)
  const [isEditing, setEditing] = useState(false)
  return (
    <Shown query={query}>
      {(shadow) => {
        const ids = [...new Set([...Object.keys(shadow.state.desired), ...Object.keys(shadow.state.reported)])]
        const rows = ids.map((id) => ({ id, element: model.properties.find((one) => one.id === id), shadow }))
        const differing = Object.keys(shadow.delta).length
        return (
          <div class="stack">
            <Card
              title={differing === 0 ? texts.same : texts.differs(differing)}
              actions={canWrite("devices") && device.enabled_status === "enable" &&
                <button type="button" class="button primary" onClick={() => setEditing(true)}>{texts.edit}</button>}
            >
              <Facts
                facts={[
                  [texts.version, shadow.version],
                  [common.changed, <Ago at={shadow.timestamp * 1000} />]
                ]}
              />
              {rows.length === 0
                ? <Empty title={texts.empty}>{texts.emptyHint}</Empty>
                : (
                  <Table
                    caption={texts.caption}
                    columns={columnsOf(device.device_id, query)}
                    rows={rows}
                    keyOf={({ id }) => id}
                  />
                )}
            </Card>
            <details>
              <summary>{texts.asJson}</summary>
              <Snippet label={texts.asJson} text={JSON.stringify(shadow, null, 2)} />
            </details>
            {isEditing && (
              <EditDesired
                deviceId={device.device_id}
                model={model}
                query={query}
                shadow={shadow}
                onClose={() => setEditing(false)}
              />
            )}
          </div>
        )
      }}
    </Shown>
  )
}

const columnsOf = (deviceId: string, query: Query<Shadow>): ReadonlyArray<Column<Row>> => {
  const { common, device: { shadow: texts, values } } = currentTexts()
  return [
    { id: "name", title: values.property, cell: ({ element, id }) => <span title={id}>{element?.name ?? id}</span> },
    { id: "desired", title: texts.desired, cell: (row) => <Side {...row} side="desired" /> },
    { id: "reported", title: texts.reported, cell: (row) => <Side {...row} side="reported" /> },
    {
      id: "delta",
      title: texts.delta,
      kind: "tight",
      cell: ({ id, shadow: { delta, state } }) =>
        id in delta
          ? <Badge mood="warn">{texts.isDifferent}</Badge>
          : id in state.desired && <Badge mood="good">{texts.isSame}</Badge>
    },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: ({ id, shadow: { state } }) =>
        canWrite("devices") && (
          <div class="row">
            {id in state.desired && (
              <button
                type="button"
                class="button small"
                aria-label={texts.clearNamed(id)}
                onClick={() => askClear(deviceId, id, query)}
              >
                {texts.clear}
              </button>
            )}
            {id in state.reported && (
              <button
                type="button"
                class="button small"
                aria-label={texts.forgetNamed(id)}
                onClick={() => askForget(deviceId, id, query)}
              >
                {texts.forget}
              </button>
            )}
          </div>
        )
    }
  ]
}

const Side = ({ element, id, shadow, side }: Row & { readonly side: "desired" | "reported" }) => {
  const values = shadow.state[side]
  if (!(id in values)) return <span class="soft">–</span>
  return (
    <div class="stack tight">
      <ModelValue type={element?.dataType} value={values[id]} />
      <span class="soft small"><Ago at={(shadow.metadata[side][id]?.timestamp ?? 0) * 1000} /></span>
    </div>
  )
}

const askClear = (deviceId: string, id: string, query: Query<Shadow>) => {
  const { common, device: { shadow: texts } } = currentTexts()
  ask({
    title: texts.clearTitle(id),
    body: texts.clearBody,
    action: texts.clear,
    run: async () => {
      await api.devices.updateDeviceShadow({
        params: { device_id: deviceId },
        payload: { state: { desired: { [id]: null } } }
      })
      tell(common.saved)
      query.reload()
    }
  })
}

const askForget = (deviceId: string, id: string, query: Query<Shadow>) => {
  const { common, device: { shadow: texts } } = currentTexts()
  ask({
    title: texts.forgetTitle(id),
    body: texts.forgetBody,
    action: texts.forget,
    danger: true,
    run: async () => {
      await api.devices.removeReportedProperty({ params: { device_id: deviceId, property_id: id } })
      tell(common.removed)
      query.reload()
    }
  })
}
