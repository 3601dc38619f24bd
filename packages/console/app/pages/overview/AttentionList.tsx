/**
 * What needs attention, each as a sentence with the way to it.
 */
import type { ComponentChildren } from "preact"
import { deviceHref } from "../../parts/Devices.tsx"
import { Card } from "../../parts/Page.tsx"
import { Ago, Badge, type Mood } from "../../parts/Small.tsx"
import { formatNumber, useTexts } from "../../text/text.ts"
import type { OverviewData } from "./Overview.tsx"
import "./overview.css"

type Attention = OverviewData["attention"][number]

const moods: Readonly<Record<string, Mood>> = {
  device_refused: "bad",
  scene_failing: "bad",
  subscription_failing: "bad",
  device_flapping: "warn",
  upgrade_stuck: "warn",
  access_key_expires: "warn",
  quota_nearly_used: "warn"
}

export const AttentionList = ({ attention }: { readonly attention: ReadonlyArray<Attention> }) => {
  const { overview } = useTexts()
  return (
    <Card title={attention.length === 0 ? overview.attention : overview.attentionOf(formatNumber(attention.length))}>
      {attention.length === 0
        ? <p class="soft">{overview.allWell}</p>
        : (
          <ul class="attention">
            {attention.map((found) => <Found key={`${found.kind} ${JSON.stringify(found.subject)}`} found={found} />)}
          </ul>
        )}
    </Card>
  )
}

const Found = ({ found }: { readonly found: Attention }) => {
  const { overview } = useTexts()
  const { at, kind, since } = found
  return (
    <li>
      <Badge mood={moods[kind] ?? "plain"}>{overview.kinds[kind] ?? kind}</Badge>
      <span class="wrap">
        <Subject found={found} />: <Sentence found={found} />
      </span>
      {(at ?? since) !== null && <span class="soft small"><Ago at={at ?? since} /></span>}
    </li>
  )
}

/** What it is about, as a link where it has a page. */
const Subject = ({ found: { kind, subject } }: { readonly found: Attention }) => {
  const { overview } = useTexts()
  const of = (name: string) => String(subject[name] ?? "")
  const link = (href: string, title: string) => <a href={href}>{title}</a>
  switch (kind) {
    case "device_flapping":
      return link(deviceHref(of("device_id"), "diagnosis"), of("device_name"))
    case "device_refused":
      return link(deviceHref(of("device_id"), "trace"), of("device_name"))
    case "upgrade_stuck":
      return link(
        `/console/firmware/${of("firmware_id")}/campaigns/${of("task_id")}`,
        [of("product_key"), of("module"), of("version")].join(" ")
      )
    case "scene_failing":
      return link(`/console/scenes/${of("scene_id")}/executions`, of("name"))
    case "subscription_failing":
      return link(`/console/subscriptions/${of("subscription_id")}`, of("name"))
    case "access_key_expires":
      return link("/console/keys", of("name"))
    case "quota_nearly_used":
      return link("/console/projects", overview.quotas[of("quota")] ?? of("quota"))
    default:
      return <>{of("name")}</>
  }
}

const Sentence = ({ found: { count, details, kind } }: { readonly found: Attention }): ComponentChildren => {
  const { overview: { sentences } } = useTexts()
  const of = (name: string) => String(details[name] ?? "")
  switch (kind) {
    case "device_flapping":
      return sentences.flapping(count)
    case "device_refused":
      return sentences.refused(count, of("code"))
    case "upgrade_stuck":
      return sentences.stuck(count, sentences.waits[of("waits_for")] ?? of("waits_for"))
    case "scene_failing":
      return sentences.scene(count, sentences.executions[of("status")] ?? of("status"))
    case "subscription_failing":
      return [details["is_paused"] === true ? sentences.paused : sentences.subscription(count), of("reason")]
        .filter(Boolean).join(": ")
    case "access_key_expires":
      return <>{sentences.expires} <Ago at={details["expires_at"] as number | string} /></>
    case "quota_nearly_used":
      return sentences.quota(formatNumber(Number(details["used"])), formatNumber(Number(details["limit"])))
    default:
      return formatNumber(count)
  }
}
