/**
 * What can be done with a campaign in its state.
 */
import { api } from "../../api/client.ts"
import type { Item } from "../../api/Operations.ts"
import { ask } from "../../parts/Dialog.tsx"
import { DeleteButton } from "../../parts/Listing.tsx"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, useTexts } from "../../text/text.ts"

export const CampaignActions = (
  { firmwareId, reload, task: { is_app_confirmed, need_app_confirm, stage, stages, status, summary, task_id } }: {
    readonly firmwareId: string
    readonly task: Item<typeof api.ota.listUpgradeTasks>
    readonly reload: () => void
  }
) => {
  const { firmware: { campaign } } = useTexts()
  const goTo = useGoTo()
  const params = { task_id: String(task_id) }
  const pending = formatNumber(summary.pending)
  const button = (action: string, title: string, body: string, run: () => Promise<unknown>, danger = false) => (
    <button
      type="button"
      class={danger ? "button danger" : "button"}
      onClick={() => ask({ title, body, action, danger, run: () => run().then(reload) })}
    >
      {action}
    </button>
  )
  if (status !== 0 && status !== 1) {
    return (
      <DeleteButton
        title={campaign.askRemove}
        body={campaign.askRemoveBody(formatNumber(Object.values(summary).reduce((sum, count) => sum + count, 0)))}
        remove={() => api.ota.cancelTask({ params })}
        onDeleted={() => goTo(`/console/firmware/${firmwareId}`)}
      />
    )
  }
  return (
    <>
      {need_app_confirm && !is_app_confirmed &&
        button(campaign.confirm, campaign.askConfirm, campaign.askConfirmBody(pending), () =>
          api.ota.confirmUpgradeTask({ params }))}
      {stage < stages.length &&
        button(
          campaign.nextStage(stage + 1),
          campaign.askNextStage(stage + 1),
          campaign.askNextStageBody(stages[stage]!, pending),
          () => api.ota.openUpgradeStage({ params, payload: { stage: stage + 1 } })
        )}
      {button(
        campaign.cancel,
        campaign.askCancel,
        campaign.askCancelBody(pending, formatNumber(summary.upgrading)),
        () => api.ota.cancelUpgradeTask({ params, payload: { action: "cancel" } }),
        true
      )}
    </>
  )
}
