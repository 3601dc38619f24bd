/**
 * Which versions a device runs, and why it is being upgraded, or is not.
 */
import { api } from "../../api/client.ts"
import type { Data, Item } from "../../api/Operations.ts"
import { useLive } from "../../api/live.ts"
import { readAll } from "../../api/readAll.ts"
import { canWrite, ownProducts } from "../../api/session.ts"
import { usePolledQuery } from "../../api/useQuery.ts"
import { ask } from "../../parts/Dialog.tsx"
import { Card, Facts } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Badge, type Mood } from "../../parts/Small.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { texts as currentTexts, useTexts } from "../../text/text.ts"
import type { TabProps } from "./DeviceTab.ts"

type Firmware = Item<typeof api.ota.listFirmwares>

interface Module extends Data<typeof api.ota.diagnoseUpgrade> {
  readonly module: string
  /** The firmware that the task brings, if it still exists. */
  readonly firmware: Firmware | undefined
}

const defaultModule = "default"

export const FirmwareTab = ({ device }: TabProps) => {
  const { device: { firmware: texts } } = useTexts()
  const params = { device_id: device.device_id }
  const query = usePolledQuery(
    async (signal): Promise<ReadonlyArray<Module>> => {
      const results = await readAll((page) =>
        api.ota.listFirmwares({ query: { product_key: device.product_key, ...page }, signal })
      )
      const modules = [...new Set([defaultModule, ...results.map(({ module }) => module)])]
      return Promise.all(modules.map(async (module) => {
        const found = await api.ota.diagnoseUpgrade({ params, query: { module }, signal })
        const firmware = results.find((one) => one.module === module && one.version === found.target_version)
        return { ...found, module, firmware }
      }))
    },
    [device.device_id, device.product_key, device.status],
    15
  )
  useLive({ device_id: device.device_id }, (event) => {
    if (event.type === "upgrade") query.reload()
  })
  return (
    <Shown query={query}>
      {(modules) => (
        <div class="stack">
          {modules.map((module) => (
            <ModuleCard key={module.module} deviceId={device.device_id} module={module} reload={query.reload} />
          ))}
          <p><a href={`/console/firmware?product=${device.product_key}`}>{texts.all}</a></p>
        </div>
      )}
    </Shown>
  )
}

/** Of the status of a device in a task: pending, upgrading, succeeded, failed, cancelled. */
const moods: ReadonlyArray<Mood> = ["plain", "warn", "busy", "good", "bad", "plain"]
const isRunning = (status: number | null): boolean => status === 1 || status === 2

const ModuleCard = (
  { deviceId, module, reload }: { readonly deviceId: string; readonly module: Module; readonly reload: () => void }
) => {
  const { common, device: { firmware: texts } } = useTexts()
  const { current_version, firmware, message, reason, status, step, target_version, task_id } = module
  return (
    <Card
      title={module.module === defaultModule ? texts.main : texts.module(module.module)}
      actions={canWrite("ota") && task_id !== null && isRunning(status) &&
        <Actions deviceId={deviceId} taskId={task_id} reason={reason} reload={reload} />}
    >
      <Facts
        facts={[
          [texts.version, current_version === "" ? <span class="soft">{texts.notReported}</span> : <code>{current_version}</code>],
          [texts.target, target_version === null ? undefined : <code>{target_version}</code>],
          [texts.task, task_id === null ? undefined : firmware === undefined || ownProducts.value !== undefined
            ? String(task_id)
            : <a href={`/console/firmware/${firmware.id}/campaigns/${task_id}`}>{firmware.name}, {texts.taskOf(task_id)}</a>],
          [common.status, status === null ? undefined : <Badge mood={moods[status] ?? "plain"}>{texts.states[status] ?? status}</Badge>]
        ]}
      />
      {status === 2 && step !== null && step >= 0 && (
        <div class="row">
          <progress max={100} value={step} aria-label={texts.progress} />
          <span>{texts.percent(step)}</span>
        </div>
      )}
      <div class={reason === "failed" || reason === "timed-out" ? "notice bad" : "notice"}>
        {reason !== "succeeded" && reason !== "upgrading" && <h3>{texts.why}</h3>}
        <p>{texts.reasons[reason] ?? reason}</p>
        <p class="soft small wrap">{message}</p>
      </div>
    </Card>
  )
}

const Actions = (
  { deviceId, reason, reload, taskId }: {
    readonly deviceId: string
    readonly taskId: number
    readonly reason: string
    readonly reload: () => void
  }
) => {
  const { common, device: { firmware: texts } } = useTexts()
  const params = { task_id: String(taskId), device_id: deviceId }
  // The routes of tasks name no product: a key that is limited to products may not call them.
  const isOfAll = ownProducts.value === undefined
  const done = (text: string) => () => {
    tell(text)
    reload()
  }
  return (
    <>
      {isOfAll && reason === "awaiting-confirmation" && (
        <button
          type="button"
          class="button small"
          onClick={() =>
            void api.ota.confirmDeviceUpgrade({ params }).then(done(common.saved), tellFailure)}
        >
          {texts.confirm}
        </button>
      )}
      {(reason === "waiting-for-device" || reason === "rate-limited" || reason === "retry-later") && (
        <button
          type="button"
          class="button small"
          onClick={() =>
            void api.ota.startUpgrade({ params: { device_id: deviceId }, payload: { task_id: taskId } })
              .then(done(texts.told), tellFailure)}
        >
          {texts.start}
        </button>
      )}
      {isOfAll && (
        <button type="button" class="button small danger" onClick={() => askCancel(params, reload)}>{texts.cancel}</button>
      )}
    </>
  )
}

const askCancel = (params: { readonly task_id: string; readonly device_id: string }, reload: () => void) => {
  const { device: { firmware: texts } } = currentTexts()
  ask({
    title: texts.cancelTitle,
    body: texts.cancelBody,
    action: texts.cancel,
    danger: true,
    run: async () => {
      await api.ota.cancelDeviceUpgrade({ params, payload: {} })
      tell(texts.cancelled)
      reload()
    }
  })
}
