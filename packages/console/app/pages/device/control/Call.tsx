/**
 * How a call to a device is made, and what came of it.
 */
import { deviceHref } from "../../../parts/Devices.tsx"
import { SelectField } from "../../../parts/Form.tsx"
import type { ModelField } from "../../../parts/model/Model.ts"
import { ModelValue } from "../../../parts/model/ModelValue.tsx"
import { Facts } from "../../../parts/Page.tsx"
import { Json } from "../../../parts/Small.tsx"
import { useTexts } from "../../../text/text.ts"
import { CommandBadge } from "../CommandBadge.tsx"

/** Seconds; an empty one is the default of the API. */
export interface CallOptions {
  readonly wait: string
  readonly ttl: string
}

const waits = ["", "0", "8", "30"] as const
const lifetimes = ["", "0", "3600", "86400"] as const

/** What the options add to the body of a call. */
export const bodyOf = ({ ttl, wait }: CallOptions) => ({
  ...wait === "" ? {} : { wait: Number(wait) },
  ...ttl === "" ? {} : { ttl: Number(ttl) }
})

/** How long to wait for the reply, and for how long the call is kept for a device that is away. */
export const CallFields = (
  { canWait = true, onChange, options }: {
    readonly options: CallOptions
    readonly onChange: (options: CallOptions) => void
    readonly canWait?: boolean
  }
) => {
  const { control } = useTexts().device
  return (
    <div class="filters">
      {canWait && (
        <SelectField
          label={control.wait}
          path="wait"
          value={options.wait}
          options={waits.map((seconds) => [seconds as string, control.waits[seconds]] as const)}
          onChange={(wait) => onChange({ ...options, wait })}
        />
      )}
      <SelectField
        label={control.ttl}
        path="ttl"
        value={options.ttl}
        options={lifetimes.map((seconds) => [seconds as string, control.ttls[seconds]] as const)}
        onChange={(ttl) => onChange({ ...options, ttl })}
      />
    </div>
  )
}

/** What a call returned. Without `state` nobody has waited. */
export interface Outcome {
  readonly message_id: string
  readonly state?: string | undefined
  readonly code?: number | null | undefined
  readonly message?: string | undefined
  readonly data?: unknown
}

export const CallOutcome = (
  { deviceId, outcome, outputs = [] }: {
    readonly deviceId: string
    readonly outcome: Outcome
    readonly outputs?: ReadonlyArray<ModelField>
  }
) => {
  const { device: { control } } = useTexts()
  const { code, data, message, message_id, state = "queued" } = outcome
  const values = typeof data === "object" && data !== null ? Object.entries(data) : []
  const known = new Map(outputs.map((output) => [output.id, output]))
  return (
    <div class={state === "failed" ? "notice bad" : "notice"} role="status">
      <div class="stack tight">
        <p class="row">
          <CommandBadge state={state} />
          <a href={deviceHref(deviceId, "commands")}>{control.command(message_id)}</a>
          {code !== null && code !== undefined && <span>{control.answered(code)}</span>}
          {message}
        </p>
        {values.length > 0 && (
          <Facts
            facts={values.map(([id, value]) => [
              known.get(id)?.name ?? id,
              <ModelValue type={known.get(id)?.dataType} value={value} />
            ])}
          />
        )}
        {values.length === 0 && data !== undefined && data !== null && typeof data !== "object" && <Json value={data} />}
      </div>
    </div>
  )
}
