/**
 * A time as cron, with its words and its next times.
 */
import { useQuery } from "../../api/useQuery.ts"
import { TextField } from "../../parts/Form.tsx"
import { loadPart } from "../../parts/loadPart.ts"
import { Failure } from "../../parts/Shown.tsx"
import { Time } from "../../parts/Small.tsx"
import { language, useTexts } from "../../text/text.ts"

export const CronField = (
  { expression, onExpression, onTimeZone, path, timeZone }: {
    readonly expression: string
    readonly timeZone: string
    readonly path: string
    readonly onExpression: (expression: string) => void
    readonly onTimeZone: (timeZone: string) => void
  }
) => {
  const { scenes: { fields } } = useTexts()
  const { data: cron, error } = useQuery(() => loadPart(() => import("./cron.ts")), [])
  const words = cron?.inWords(expression, language.value)
  const times = words === undefined ? undefined : cron?.nextTimes(expression, timeZone)
  return (
    <>
      <TextField
        label={fields.cron}
        hint={words ?? fields.cronHint}
        path={`${path}.cron`}
        value={expression}
        onInput={onExpression}
      />
      <TextField
        label={fields.time_zone}
        hint={fields.timeZoneHint}
        path={`${path}.time_zone`}
        value={timeZone}
        onInput={onTimeZone}
      />
      {error !== undefined && <Failure error={error} />}
      {times !== undefined && (
        <div class="small soft">
          {times.length === 0 ? fields.never : fields.next}
          <ul>{times.map((at) => <li key={at}><Time at={at} /></li>)}</ul>
        </div>
      )}
    </>
  )
}
