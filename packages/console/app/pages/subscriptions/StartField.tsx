/**
 * Where a subscription begins to read.
 */
import { SelectField, TextField } from "../../parts/Form.tsx"
import { useTexts } from "../../text/text.ts"

export interface Start {
  readonly kind: "now" | "earliest" | "time"
  /** In the viewer's zone, as `datetime-local` has it. */
  readonly time: string
}

/** As the API takes it. */
export const startOf = ({ kind, time }: Start): "now" | "earliest" | number =>
  kind === "time" ? new Date(time).getTime() : kind

/** Whether a time is chosen, and none is given. */
export const lacksTime = ({ kind, time }: Start): boolean => kind === "time" && time === ""

export const StartField = (
  { onChange, path, value }: {
    readonly path: string
    readonly value: Start
    readonly onChange: (start: Start) => void
  }
) => {
  const { subscriptions } = useTexts()
  return (
    <>
      <SelectField
        label={subscriptions.start}
        path={path}
        value={value.kind}
        options={Object.entries(subscriptions.starts) as ReadonlyArray<[Start["kind"], string]>}
        onChange={(kind) => onChange({ ...value, kind })}
      />
      {value.kind === "time" && (
        <TextField
          label={subscriptions.time}
          type="datetime-local"
          value={value.time}
          onInput={(time) => onChange({ ...value, time })}
        />
      )}
    </>
  )
}
