/**
 * Every value of a property, the newest first.
 */
import { useState } from "preact/hooks"
import { api } from "../../../api/client.ts"
import { useQuery } from "../../../api/useQuery.ts"
import type { PropertyElement } from "../../../parts/model/Model.ts"
import { ModelValue } from "../../../parts/model/ModelValue.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { Time } from "../../../parts/Small.tsx"
import { SteadyButton } from "../../../parts/SteadyButton.tsx"
import { Table } from "../../../parts/Table.tsx"
import { useTexts } from "../../../text/text.ts"
import type { Span } from "./useSpan.ts"

interface Value {
  readonly time: number
  readonly value: unknown
}

const pageSize = 25

export const ValueList = (
  { deviceId, property, span }: {
    readonly deviceId: string
    readonly property: PropertyElement
    readonly span: Span
  }
) => {
  const { common, device: { data: texts } } = useTexts()
  /** The ends of the pages that one has gone through; a span that ends now begins at the newest value. */
  const [ends, setEnds] = useState<ReadonlyArray<number>>([])
  const end = ends.at(-1) ?? (span.range === undefined ? Math.ceil(span.to) : undefined)
  const query = useQuery(async (signal) => {
    const { results } = await api.history.listPropertyHistory({
      params: { device_id: deviceId, property_id: property.id },
      query: { limit: pageSize, start: Math.max(0, Math.floor(span.from)), ...end === undefined ? {} : { end } },
      signal
    })
    return results as ReadonlyArray<Value>
  }, [deviceId, property.id, end])
  return (
    <Shown query={query}>
      {(values) => (
        <>
          {values.length === 0 ? <p class="soft">{texts.nothing}</p> : (
            <Table
              caption={texts.listOf(property.name)}
              columns={[
                { id: "time", title: common.time, kind: "tight", cell: ({ time }) => <Time at={time} /> },
                { id: "value", title: property.name, cell: ({ value }) => <ModelValue type={property.dataType} value={value} /> }
              ]}
              rows={values}
              keyOf={({ time }) => String(time)}
            />
          )}
          <div class="row">
            <SteadyButton isOff={ends.length === 0} onClick={() => setEnds(ends.slice(0, -1))}>
              {texts.newer}
            </SteadyButton>
            <SteadyButton
              isOff={values.length < pageSize}
              onClick={() => setEnds([...ends, values.at(-1)!.time - 1])}
            >
              {texts.older}
            </SteadyButton>
          </div>
        </>
      )}
    </Shown>
  )
}
