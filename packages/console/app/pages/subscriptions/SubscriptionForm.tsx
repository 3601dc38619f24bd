/**
 * Creates a subscription, or changes one.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { type LiveEventType, liveEventTypes } from "../../api/live.ts"
import type { Body } from "../../api/Operations.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { ListField, listOf, TagsField, tagsOf } from "../../parts/Fields.tsx"
import { CheckField, Form, TextField } from "../../parts/Form.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useTexts } from "../../text/text.ts"
import { lacksTime, type Start, StartField, startOf } from "./StartField.tsx"
import type { SubscriptionData } from "./Subscriptions.tsx"

type Draft = Body<typeof api.subscriptions.createSubscription>
type Filter = SubscriptionData["filter"]

export const SubscriptionForm = (
  { onClose, onSaved, subscription }: {
    /** Undefined: a new one. */
    readonly subscription?: SubscriptionData
    readonly onClose: () => void
    readonly onSaved: () => void
  }
) => {
  const { common, events, subscriptions } = useTexts()
  const close = useClose(onClose)
  // Somebody else may change it meanwhile: what one has not touched is theirs.
  const [name, setName] = useState<string>()
  const [webhook, setWebhook] = useState<string>()
  const [start, setStart] = useState<Start>({ kind: "now", time: "" })
  const [changed, setChanged] = useState<Partial<FilterTexts>>({})
  const filter = { ...textsOf(subscription?.filter ?? {}), ...changed }
  const change = (changes: Partial<FilterTexts>) => setChanged({ ...changed, ...changes })
  const list = (field: Exclude<keyof FilterTexts, "types" | "tags">, path: string, label: string, hint: string) => (
    <ListField label={label} hint={hint} path={path} value={filter[field]} onInput={(text) => change({ [field]: text })} />
  )
  const save = async () => {
    if (subscription === undefined) {
      await api.subscriptions.createSubscription({
        payload: {
          name: name ?? "",
          filter: filterOf(filter),
          start: startOf(start),
          ...webhook === undefined || webhook === "" ? {} : { webhook: { url: webhook } }
        }
      })
    } else {
      const params = { subscription_id: String(subscription.subscription_id) }
      await api.subscriptions.changeSubscription({
        params,
        payload: {
          ...name === undefined ? {} : { name },
          ...webhook === undefined ? {} : { webhook: webhook === "" ? null : { url: webhook } },
          ...Object.keys(changed).length === 0 ? {} : { filter: await changedFilter(params, changed) }
        }
      })
    }
    tell(common.saved)
    onSaved()
    close()
  }
  return (
    <Dialog title={subscription === undefined ? subscriptions.create : subscription.name} onClose={onClose} wide>
      <Form
        submit={subscription === undefined ? common.create : common.save}
        disabled={lacksTime(start) || changed.tags !== undefined && tagsOf(changed.tags) === undefined}
        onCancel={onClose}
        onSubmit={save}
      >
        <div class="halves">
          <div class="stack">
            <TextField label={common.name} path="name" required value={name ?? subscription?.name ?? ""} onInput={setName} />
            <TextField
              label={subscriptions.webhook}
              hint={subscriptions.webhookHint}
              path="webhook.url"
              placeholder="https://"
              value={webhook ?? subscription?.webhook?.url ?? ""}
              onInput={setWebhook}
            />
            {subscription === undefined && <StartField path="start" value={start} onChange={setStart} />}
            <fieldset class="compound">
              <legend>{subscriptions.types}</legend>
              <div class="stack tight">
                <p class="soft small">{subscriptions.typesHint}</p>
                {liveEventTypes.map((type) => (
                  <CheckField
                    key={type}
                    label={events.types[type]}
                    checked={filter.types.includes(type)}
                    onChange={(isOn) =>
                      change({ types: isOn ? [...filter.types, type] : filter.types.filter((one) => one !== type) })}
                  />
                ))}
              </div>
            </fieldset>
          </div>
          <div class="stack">
            {list("products", "filter.product_keys", subscriptions.products, subscriptions.listHint)}
            {list("devices", "filter.device_ids", subscriptions.devices, subscriptions.listHint)}
            {list("properties", "filter.property_ids", subscriptions.properties, subscriptions.propertiesHint)}
            <TagsField
              label={subscriptions.tags}
              path="filter.tags"
              value={filter.tags}
              onInput={(tags) => change({ tags })}
            />
          </div>
        </div>
      </Form>
    </Dialog>
  )
}

interface FilterTexts {
  readonly types: ReadonlyArray<LiveEventType>
  readonly products: string
  readonly devices: string
  readonly properties: string
  readonly tags: string
}

const textsOf = ({ device_ids = [], product_keys = [], property_ids = [], tags = {}, types = [] }: Filter): FilterTexts => ({
  types,
  products: product_keys.join("\n"),
  devices: device_ids.join("\n"),
  properties: property_ids.join("\n"),
  tags: Object.entries(tags).map((tag) => tag.join(":")).join("\n")
})

/** The filter that is stored now, with what is changed of it. The field cannot show all tags: others stay as they are. */
const changedFilter = async (
  params: { readonly subscription_id: string },
  changed: Partial<FilterTexts>
): Promise<Filter> => {
  const { filter: { tags, ...filter } } = await api.subscriptions.getSubscription({ params })
  const next = filterOf({ ...textsOf(filter), ...changed })
  return changed.tags === undefined && tags !== undefined ? { ...next, tags } : next
}

/** What is empty is no condition. */
const filterOf = ({ devices, products, properties, tags, types }: FilterTexts): NonNullable<Draft["filter"]> => {
  const named = (name: string, text: string) => listOf(text).length === 0 ? {} : { [name]: listOf(text) }
  return {
    ...types.length === 0 ? {} : { types },
    ...named("product_keys", products),
    ...named("device_ids", devices),
    ...named("property_ids", properties),
    ...tags.trim() === "" ? {} : { tags: tagsOf(tags) }
  }
}
