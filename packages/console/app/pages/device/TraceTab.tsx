/**
 * What a device says and hears, message by message, while a trace of it runs.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { isToCome } from "../../api/clock.ts"
import type { Data } from "../../api/Operations.ts"
import { canWrite, hasEnded, noticeEnd } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { SelectField } from "../../parts/Form.tsx"
import { Card, Empty } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, download, type Mood, Time } from "../../parts/Small.tsx"
import { SteadyButton } from "../../parts/SteadyButton.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { formatNumber, useTexts } from "../../text/text.ts"
import type { TabProps } from "./DeviceTab.ts"

type Trace = Data<typeof api.traces.readTrace>
type Entry = Trace["results"][number]

/** As many as the server keeps. */
const maxEntries = 1000
const pageSize = 200
/** Milliseconds. */
const pause = 1000
const lengths = ["5", "10", "30", "60"] as const

export const TraceTab = ({ device }: TabProps) => {
  const { device: { trace: texts } } = useTexts()
  const deviceId = device.device_id
  const query = useTrace(deviceId)
  const url = useUrl()
  const kind = url.get("kind")
  return (
    <Shown query={query}>
      {({ dropped, results, until }) => {
        const isOn = isToCome(until)
        const shown = kind === "" ? results : results.filter((entry) => kindOf(entry) === kind)
        return (
          <Card title={texts.title} actions={canWrite("traces") && <Switch deviceId={deviceId} isOn={isOn} reload={query.reload} />}>
            <p class="row" role="status">
              <Badge mood={isOn ? "good" : "plain"}>{isOn ? texts.on : texts.off}</Badge>
              {isOn && <span>{texts.until} <Time at={until} /></span>}
              {dropped > 0 && <span class="warn">{texts.dropped(formatNumber(dropped))}</span>}
            </p>
            {results.length === 0
              ? <Empty title={isOn ? texts.waiting : texts.empty}>{isOn ? texts.waitingHint : texts.emptyHint}</Empty>
              : (
                <>
                  <div class="row apart">
                    <SelectField
                      label={texts.show}
                      value={kind}
                      options={[["", texts.all] as const, ...kinds.map((id) => [id as string, texts.kinds[id]] as const)]}
                      onChange={(kind) => url.set({ kind }, true)}
                    />
                    <button
                      type="button"
                      class="button small"
                      onClick={() => download(`trace-${device.device_name}.json`, JSON.stringify(results, null, 2))}
                    >
                      {texts.download}
                    </button>
                  </div>
                  <ol class="trace" aria-label={texts.title}>
                    {shown.toReversed().map((entry) => <EntryItem key={entry.entry_id} entry={entry} />)}
                  </ol>
                </>
              )}
          </Card>
        )
      }}
    </Shown>
  )
}

/** Reads what there is, then each second what has come since. */
const useTrace = (deviceId: string) => {
  const query = useQuery(
    (signal) => api.traces.readTrace({ params: { device_id: deviceId }, query: { limit: pageSize }, signal }),
    [deviceId]
  )
  const cursor = useRef<number | undefined>(undefined)
  cursor.current = query.data?.cursor
  const isRead = query.data !== undefined
  useEffect(() => {
    if (!isRead) return
    const abort = new AbortController()
    const readOn = async () => {
      while (!abort.signal.aborted) {
        await new Promise((resolve) => setTimeout(resolve, pause))
        if (document.visibilityState !== "visible" || hasEnded.value || cursor.current === undefined) continue
        try {
          const next = await api.traces.readTrace({
            params: { device_id: deviceId },
            query: { after: String(cursor.current), limit: pageSize },
            signal: abort.signal
          })
          query.change((trace) => joined(trace, next))
        } catch (error) {
          noticeEnd(error)
          // The page says by itself when the server is away; the next second tries again.
        }
      }
    }
    void readOn()
    return () => abort.abort()
  }, [deviceId, isRead])
  return query
}

/** What was read meanwhile does not come twice. */
const joined = ({ results }: Trace, next: Trace): Trace => {
  const last = results.at(-1)?.entry_id ?? 0
  const added = next.results.filter(({ entry_id }) => entry_id > last)
  return { ...next, results: [...results, ...added].slice(-maxEntries) }
}

const Switch = (
  { deviceId, isOn, reload }: { readonly deviceId: string; readonly isOn: boolean; readonly reload: () => void }
) => {
  const { common, device: { trace: texts } } = useTexts()
  const [minutes, setMinutes] = useState<(typeof lengths)[number]>("10")
  const params = { device_id: deviceId }
  const change = async (changing: Promise<unknown>) => {
    try {
      await changing
      tell(common.saved)
      reload()
    } catch (error) {
      tellFailure(error)
    }
  }
  return (
    <>
      <select
        class="add-line"
        aria-label={texts.length}
        value={minutes}
        onChange={(event) => setMinutes(event.currentTarget.value as typeof minutes)}
      >
        {lengths.map((length) => <option key={length} value={length}>{texts.minutes(length)}</option>)}
      </select>
      <button
        type="button"
        class={isOn ? "button small" : "button small primary"}
        onClick={() => void change(api.traces.startTrace({ params, payload: { minutes: Number(minutes) } }))}
      >
        {isOn ? texts.extend : texts.start}
      </button>
      <SteadyButton isOff={!isOn} onClick={() => void change(api.traces.stopTrace({ params }))}>
        {texts.stop}
      </SteadyButton>
    </>
  )
}

const kinds = ["uplink", "refusedUplink", "downlink", "connection"] as const
type Kind = (typeof kinds)[number]

/** A message that has not taken effect, or not as a whole, is looked for first. */
const kindOf = ({ kind, reply }: Entry): Kind => {
  if (kind === "downlink") return "downlink"
  if (kind !== "uplink") return "connection"
  return hasProblem(reply) ? "refusedUplink" : "uplink"
}

const hasProblem = (reply: Entry["reply"]): boolean =>
  reply !== null && (reply.code !== 200 || Object.keys(reply.issues).length > 0)

const moods: Readonly<Record<string, Mood>> = {
  uplink: "busy",
  downlink: "plain",
  connected: "good",
  disconnected: "warn",
  refused: "bad"
}

const EntryItem = ({ entry }: { readonly entry: Entry }) => {
  const { device: { trace: texts } } = useTexts()
  const { address, gateway, kind, payload, reason, reply, time, topic, transport } = entry
  return (
    <li class={hasProblem(reply) || kind === "refused" ? "entry bad-entry" : "entry"}>
      <div class="row">
        <Badge mood={moods[kind] ?? "plain"}>{texts.entryKinds[kind] ?? kind}</Badge>
        <Time at={time} />
        <span class="soft small">
          {transport}
          {address !== "" && `, ${address}`}
          {gateway !== null && `, ${texts.via} ${gateway.device_name}`}
        </span>
      </div>
      {topic !== "" && <code class="wrap">{topic}</code>}
      {reason !== "" && <p class="wrap">{reason}</p>}
      {payload !== null && <Traced label={texts.payload} {...payload} />}
      {reply !== null && (
        <div class="row">
          <span class={reply.code === 200 ? "small good" : "small bad"}>{texts.answered(reply.code, reply.message)}</span>
          {reply.data.text !== "" && reply.data.text !== "{}" && <Traced label={texts.answer} {...reply.data} />}
        </div>
      )}
      {reply !== null && Object.entries(reply.issues).map(([path, issues]) => (
        <p key={path} class="issue wrap"><strong>{path}</strong>: {issues.join(". ")}</p>
      ))}
    </li>
  )
}

const Traced = (
  { bytes, cut, encoding, label, text }: NonNullable<Entry["payload"]> & { readonly label: string }
) => {
  const { device: { trace: texts } } = useTexts()
  return (
    <div class="traced">
      <pre class="small" tabIndex={0} aria-label={label}><code>{text}</code></pre>
      {(cut || encoding !== "utf8") && (
        <span class="soft small">{encoding !== "utf8" && encoding} {cut && texts.cut(bytes)}</span>
      )}
    </div>
  )
}
