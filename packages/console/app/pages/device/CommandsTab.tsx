/**
 * What was asked of a device, from queued to its end.
 */
import { useEffect } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { useLive } from "../../api/live.ts"
import { canWrite, hasEnded } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { deviceHref } from "../../parts/Devices.tsx"
import { ask } from "../../parts/Dialog.tsx"
import type { ModelField, ThingModel } from "../../parts/model/Model.ts"
import { ModelValue } from "../../parts/model/ModelValue.tsx"
import { Listing } from "../../parts/Listing.tsx"
import { Empty } from "../../parts/Page.tsx"
import { Ago, Json } from "../../parts/Small.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { texts as currentTexts, useTexts } from "../../text/text.ts"
import { CommandBadge, isUnderWay } from "./CommandBadge.tsx"
import type { TabProps } from "./DeviceTab.ts"

type Command = Item<typeof api.commands.listMessages>

/** Milliseconds between two reads while a command is under way, and otherwise: no event tells that one was handed over. */
const soon = 2000
const later = 30_000

export const CommandsTab = ({ device, model }: TabProps) => {
  const { device: { commands } } = useTexts()
  const url = useUrl()
  const deviceId = device.device_id
  const query = useQuery(
    (signal) =>
      api.commands.listMessages({ params: { device_id: deviceId }, query: { page: url.page, page_size: 25 }, signal }),
    [deviceId, url.page]
  )
  const isBusy = query.data?.results.some(({ state }) => isUnderWay(state)) === true
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible" && !hasEnded.value) query.reload()
    }, isBusy ? soon : later)
    return () => clearInterval(timer)
  }, [isBusy, query.reload])
  useLive({ device_id: deviceId }, (event) => {
    if (event.type === "reply") query.reload()
  })
  return (
    <Listing
      query={query}
      empty={
        <Empty
          title={commands.empty}
          actions={canWrite("commands") && <a class="button" href={deviceHref(deviceId, "control")}>{commands.toControl}</a>}
        >
          {commands.emptyHint}
        </Empty>
      }
    >
      {(rows) => (
        <Table
          caption={commands.caption}
          columns={columnsOf(deviceId, model, query.reload)}
          rows={rows}
          keyOf={({ message_id }) => message_id}
        />
      )}
    </Listing>
  )
}

const columnsOf = (deviceId: string, model: ThingModel, reload: () => void): ReadonlyArray<Column<Command>> => {
  const { common, device: { commands } } = currentTexts()
  return [
    { id: "id", title: commands.id, kind: "tight", cell: ({ message_id }) => <code>{message_id}</code> },
    { id: "what", title: commands.what, cell: (command) => <What command={command} model={model} /> },
    {
      id: "state",
      title: common.status,
      kind: "tight",
      cell: ({ deliveries, state }) => (
        <span class="row">
          <CommandBadge state={state} />
          {deliveries > 1 && <span class="soft small">{commands.deliveries(deliveries)}</span>}
        </span>
      )
    },
    { id: "reply", title: commands.reply, cell: (command) => <Reply command={command} model={model} /> },
    { id: "created", title: common.created, kind: "tight", cell: ({ created_at }) => <Ago at={created_at} /> },
    { id: "changed", title: common.changed, kind: "tight", cell: ({ updated_at }) => <Ago at={updated_at} /> },
    {
      id: "actions",
      title: common.actions,
      kind: "tight",
      cell: ({ message_id, state }) =>
        state === "queued" && canWrite("commands") && (
          <button
            type="button"
            class="button small"
            aria-label={`${commands.cancel} ${message_id}`}
            onClick={() => askCancel(deviceId, message_id, reload)}
          >
            {commands.cancel}
          </button>
        )
    }
  ]
}

/** What was asked, in the words of the model. */
const What = ({ command, model }: { readonly command: Command; readonly model: ThingModel }) => {
  const { device: { commands } } = useTexts()
  const { params, service_id, topic, type } = command
  const service = model.services.find(({ id }) => id === service_id)
  const known: ReadonlyArray<ModelField> = type === "property" ? model.properties : service?.inputData ?? []
  return (
    <div class="stack tight">
      <strong>
        {commands.types[type] ?? type} {service?.name ?? service_id}
        {topic !== "" && <code>{topic}</code>}
      </strong>
      <Values fields={known} values={params} />
    </div>
  )
}

const Reply = ({ command, model }: { readonly command: Command; readonly model: ThingModel }) => {
  const { code, data, message, service_id } = command
  if (code === null && message === "") return <span class="soft">–</span>
  const outputs = model.services.find(({ id }) => id === service_id)?.outputData ?? []
  return (
    <div class="stack tight">
      <span class="wrap">{code !== null && <code>{code}</code>} {message}</span>
      {typeof data === "object" && data !== null ? <Values fields={outputs} values={data} /> : <Json value={data} />}
    </div>
  )
}

const Values = ({ fields, values }: { readonly fields: ReadonlyArray<ModelField>; readonly values: object }) => {
  const known = new Map(fields.map((field) => [field.id, field]))
  return (
    <ul>
      {Object.entries(values).map(([id, value]) => (
        <li key={id}>
          <span class="soft">{known.get(id)?.name ?? id}</span> <ModelValue type={known.get(id)?.dataType} value={value} />
        </li>
      ))}
    </ul>
  )
}

const askCancel = (deviceId: string, messageId: string, reload: () => void) => {
  const { device: { commands } } = currentTexts()
  ask({
    title: commands.cancelTitle(messageId),
    body: commands.cancelBody,
    action: commands.cancel,
    run: async () => {
      await api.commands.cancelMessage({ params: { device_id: deviceId, message_id: messageId } })
      tell(commands.cancelled)
      reload()
    }
  })
}
