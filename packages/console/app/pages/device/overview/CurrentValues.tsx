/**
 * The latest value of each property, with its age.
 */
import { deviceHref } from "../../../parts/Devices.tsx"
import type { PropertyElement } from "../../../parts/model/Model.ts"
import { ModelValue } from "../../../parts/model/ModelValue.tsx"
import { Card, Empty } from "../../../parts/Page.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { Ago, Badge } from "../../../parts/Small.tsx"
import { type Column, Table } from "../../../parts/Table.tsx"
import { useTexts } from "../../../text/text.ts"
import type { TabProps } from "../DeviceTab.ts"
import { type Shadow, useShadow } from "../useShadow.ts"

interface Row {
  readonly id: string
  readonly element: PropertyElement | undefined
  readonly shadow: Shadow
}

export const CurrentValues = ({ device, model }: TabProps) => {
  const texts = useTexts().device
  const query = useShadow(device.device_id)
  const columns = useColumns(device.device_id)
  return (
    <Card title={texts.values.title}>
      <Shown query={query}>
        {(shadow) => {
          const rows = rowsOf(shadow, model.properties)
          return rows.length === 0
            ? <Empty title={texts.values.empty}>{texts.values.emptyHint}</Empty>
            : <Table caption={texts.values.title} columns={columns} rows={rows} keyOf={({ id }) => id} />
        }}
      </Shown>
    </Card>
  )
}

/** The properties of the model in its order, and what was reported besides. */
const rowsOf = (shadow: Shadow, properties: ReadonlyArray<PropertyElement>): ReadonlyArray<Row> => {
  const known = new Set(properties.map(({ id }) => id))
  const others = Object.keys(shadow.state.reported).filter((id) => !known.has(id))
  return [
    ...properties.map((element) => ({ id: element.id, element, shadow })),
    ...others.map((id) => ({ id, element: undefined, shadow }))
  ]
}

const useColumns = (deviceId: string): ReadonlyArray<Column<Row>> => {
  const { common, device } = useTexts()
  return [
    {
      id: "name",
      title: device.values.property,
      cell: ({ element, id }) => (
        <a href={`${deviceHref(deviceId, "data")}?p=${encodeURIComponent(id)}`} title={id}>{element?.name ?? id}</a>
      )
    },
    {
      id: "value",
      title: device.values.value,
      cell: ({ element, id, shadow: { delta, state } }) => (
        <div class="row">
          {id in state.reported
            ? <ModelValue type={element?.dataType} value={state.reported[id]} />
            : <span class="soft">{common.none}</span>}
          {id in delta && (
            <Badge mood="warn">
              {device.values.desired} <ModelValue type={element?.dataType} value={delta[id]} />
            </Badge>
          )}
        </div>
      )
    },
    {
      id: "age",
      title: device.values.age,
      kind: "tight",
      cell: ({ id, shadow: { metadata } }) => <Ago at={(metadata.reported[id]?.timestamp ?? 0) * 1000} />
    }
  ]
}
