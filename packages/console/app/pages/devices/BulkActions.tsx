/**
 * What can be done with all selected devices.
 */
import { useState } from "preact/hooks"
import { ApiError } from "../../api/ApiError.ts"
import { api } from "../../api/client.ts"
import { canWrite, ownProducts } from "../../api/session.ts"
import { asApiError } from "../../api/useQuery.ts"
import { ask } from "../../parts/Dialog.tsx"
import { tell, tellFailure } from "../../parts/toasts.tsx"
import { texts, useTexts } from "../../text/text.ts"
import { NewJob } from "../jobs/NewJob.tsx"
import { AddToGroup } from "./AddToGroup.tsx"
import { SetProperties } from "./SetProperties.tsx"

/** Whether there is something that may be done with them. */
export const hasActions = (): boolean =>
  canWrite("devices") ||
  ownProducts.value === undefined && (["bulkCommands", "jobs", "deviceGroups"] as const).some((group) => canWrite(group))

/** `onDone` gets the devices that are left because it has failed for them. */
export const BulkActions = (
  { ids, onDone }: { readonly ids: ReadonlyArray<string>; readonly onDone: (left: ReadonlySet<string>) => void }
) => {
  const { common, devices, groups, jobs } = useTexts()
  const [open, setOpen] = useState<"properties" | "job" | "group">()
  const close = () => setOpen(undefined)
  const each = (run: (id: string) => Promise<unknown>, told: (count: number) => string) => {
    const left = new Set(ids)
    return () => forEach(left, run).then((count) => tell(told(count))).finally(() => onDone(left))
  }
  const change = (action: "enable" | "disable") =>
    each(
      (device_id) => api.devices.changeDeviceStatus({ params: { device_id }, payload: { action } }),
      devices.done
    )
  return (
    <div class="row" role="toolbar" aria-label={common.selected(ids.length)}>
      <strong>{common.selected(ids.length)}</strong>
      {ownProducts.value === undefined && (
        <>
          {canWrite("bulkCommands") && (
            <button type="button" class="button small" onClick={() => setOpen("properties")}>
              {devices.setProperties}
            </button>
          )}
          {canWrite("jobs") &&
            <button type="button" class="button small" onClick={() => setOpen("job")}>{jobs.create}</button>}
          {canWrite("deviceGroups") &&
            <button type="button" class="button small" onClick={() => setOpen("group")}>{groups.addTo}</button>}
        </>
      )}
      {canWrite("devices") && (
        <>
          <button type="button" class="button small" onClick={() => void change("enable")().catch(tellFailure)}>{devices.enable}</button>
          <button
            type="button"
            class="button small"
            onClick={() =>
              ask({
                title: devices.askDisable(ids.length),
                body: devices.askDisableBody,
                action: devices.disable,
                danger: true,
                run: change("disable")
              })}
          >
            {devices.disable}
          </button>
          <button
            type="button"
            class="button small danger"
            onClick={() =>
              ask({
                title: devices.askRemove(ids.length),
                body: devices.askRemoveBody,
                action: common.remove,
                danger: true,
                run: each((device_id) => api.devices.deleteDevice({ params: { device_id } }), devices.removed)
              })}
          >
            {common.remove}
          </button>
        </>
      )}
      {open === "properties" && <SetProperties scope={{ device_ids: ids }} count={ids.length} onClose={close} />}
      {open === "group" && <AddToGroup ids={ids} onClose={close} />}
      {open === "job" && <NewJob deviceIds={ids} onClose={close} />}
    </div>
  )
}

/**
 * Does it for the devices that are left, some at a time. Fails when one failed, and says
 * how many did not: these are left no longer.
 */
const forEach = async (left: Set<string>, run: (id: string) => Promise<unknown>): Promise<number> => {
  let done = 0
  const failures: Array<ApiError> = []
  const waiting = [...left]
  const work = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      try {
        await run(id)
        left.delete(id)
        done++
      } catch (error) {
        failures.push(asApiError(error))
      }
    }
  }
  await Promise.all(Array.from({ length: 6 }, work))
  const [first] = failures
  if (first === undefined) return done
  throw new ApiError(first.code, texts().devices.partly(done, failures.length, first.message), first.data)
}
