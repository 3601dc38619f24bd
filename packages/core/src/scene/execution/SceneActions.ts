/**
 * Carries out the actions of executions, one attempt at a time.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Commands } from "../../command/Commands.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { CustomAction, DeviceAction, RunSceneAction, WebhookAction } from "../definition/Action.ts"
import { maxBody } from "../definition/BodyTemplate.ts"
import type { Scene } from "../definition/Scene.ts"
import { maxChain, SceneLimits } from "../definition/SceneLimits.ts"
import { SceneStore } from "../definition/SceneStore.ts"
import { SceneBacklog } from "../matching/SceneBacklog.ts"
import { deviceOf } from "../matching/SceneEvent.ts"
import { SceneTriggers } from "../matching/SceneTriggers.ts"
import { backlogReason } from "./BacklogWatch.ts"
import {
  type ActionOutcome,
  type Attempt,
  type Execution,
  failed,
  limited,
  loop,
  maxRetries,
  type PutOff,
  retryDelay,
  skipped,
  succeeded,
  tryAgain
} from "./Execution.ts"
import { ExecutionStore } from "./ExecutionStore.ts"
import { SceneExtensions } from "./SceneExtensions.ts"
import { treeEndReason } from "./SceneTree.ts"
import { isTransient, webhookBody } from "./Webhook.ts"
import { isSuccess, shownResponse, WebhookDelivery } from "./WebhookDelivery.ts"

export class SceneActions extends Context.Service<SceneActions, {
  /**
   * Attempts the action at the place, from 0, and returns its outcome. A webhook
   * whose target gets enough already is put off, which is no attempt. If a node
   * ends before it has noted an outcome, the action is attempted again under the
   * same id.
   */
  readonly attempt: (
    execution: Execution,
    scene: Pick<Scene, "sceneId" | "name">,
    position: number
  ) => Effect.Effect<ActionOutcome, StoreError>
}>()("@device-cloud/core/scene/execution/SceneActions") {
  static readonly layer: Layer.Layer<
    SceneActions,
    never,
    | Commands
    | SceneStore
    | ExecutionStore
    | SceneTriggers
    | SceneBacklog
    | WebhookDelivery
  > = Layer.effect(SceneActions, Effect.suspend(() => make))
}

type NamedScene = Pick<Scene, "sceneId" | "name">

const internalError = (cause: unknown) =>
  Effect.as(Effect.logError("An action of a scene could not be carried out", cause), failed("Internal error"))

/** Names the action at the place of the execution, the same for each attempt. */
const idOf = ({ executionId }: Execution, position: number): string => `${executionId}.${position}`

const make = Effect.gen(function*() {
  const commands = yield* Commands
  const scenes = yield* SceneStore
  const executions = yield* ExecutionStore
  const triggers = yield* SceneTriggers
  const backlog = yield* SceneBacklog
  const limits = yield* SceneLimits
  const webhooks = yield* WebhookDelivery
  const { actions } = yield* SceneExtensions

  const call = (projectId: ProjectId, action: DeviceAction, origin: string) =>
    action._tag === "SetProperties"
      ? commands.setProperties(projectId, action.deviceId, action.items, { origin })
      : commands.callService(projectId, action.deviceId, action.serviceId, action.items, { origin })

  const tellDevice = Effect.fnUntraced(
    function*(execution: Execution, action: DeviceAction, position: number) {
      const { deviceId } = action
      return yield* call(execution.projectId, action, idOf(execution, position)).pipe(
        Effect.map(({ messageId }) => succeeded(`Message ${messageId}`)),
        Effect.catchTags({
          DeviceNotFound: () => Effect.succeed(skipped(`Device ${deviceId} does not exist`)),
          DeviceDisabled: () => Effect.succeed(skipped(`Device ${deviceId} is disabled`)),
          ElementNotFound: ({ id, type }) => Effect.succeed(failed(`The thing model has no ${type} ${id}`)),
          TooManyCommands: () => Effect.succeed(failed("Too many messages wait for the device")),
          InvalidInput: ({ issues }) => Effect.succeed(failed(issues[0].message)),
          InvalidValues: ({ issues }) => Effect.succeed(failed(`${issues[0].path.join(".")}: ${issues[0].message}`))
        })
      )
    }
  )

  const runScene = Effect.fnUntraced(
    function*(execution: Execution, { sceneId }: RunSceneAction, position: number) {
      const { event, executionId, projectId } = execution
      const chain = [...execution.chain, execution.sceneId]
      if (chain.includes(sceneId)) return loop(`Scene ${sceneId} has led here: ${chain.join(", ")}`)
      if (chain.length >= maxChain) return loop(`More than ${maxChain} scenes in a row: ${chain.join(", ")}`)
      const target = Option.getOrUndefined(yield* scenes.get(projectId, sceneId))
      if (target === undefined) return skipped(`Scene ${sceneId} does not exist`)
      if (target.status === "disable") return skipped(`Scene ${sceneId} is disabled`)
      const at = yield* Clock.currentTimeMillis
      const next = { _tag: "RunByScene", at, sceneId: execution.sceneId, executionId, device: deviceOf(event) } as const
      // Another attempt makes the same execution, which is stored once.
      const child = { ...triggers.execution(target, next, at), executionId: idOf(execution, position), chain }
      if (!backlog.admit(child)) return limited(backlogReason(limits))
      const rootId = execution.rootId ?? executionId
      const [own, adds] = [execution.outcomes.length, Math.max(1, target.actions.length)]
      const ended = yield* executions.enqueueChild(child, rootId, { at, own, adds, limits })
      if (ended !== null) return limited(treeEndReason(ended, limits, rootId))
      triggers.wake()
      return succeeded(`Execution ${child.executionId}`)
    }
  )

  const sendWebhook = Effect.fnUntraced(function*(
    execution: Execution,
    scene: NamedScene,
    action: WebhookAction,
    position: number
  ): Effect.fn.Return<Attempt | PutOff, StoreError> {
    const body = webhookBody(execution, scene, action.body)
    if (body === undefined) return failed(`The body would be longer than ${maxBody} characters`)
    const { connectTimeout, method, requestTimeout, url } = action
    const outcome = yield* webhooks.send(execution.projectId, {
      id: `msg_${execution.executionId}_${position}`,
      url,
      method,
      body,
      connectTimeout,
      requestTimeout,
      hasWaited: execution.outcomes[position]!.hasWaited === true
    })
    switch (outcome._tag) {
      case "PutOff":
        return { status: "put-off", until: outcome.until, detail: outcome.detail }
      case "Undeliverable":
        return failed(outcome.detail)
      case "Unanswered": {
        const { message, reason } = outcome.error
        return reason === "forbidden" ? failed(message) : tryAgain(message)
      }
      case "Answered": {
        const { status } = outcome.response
        const detail = shownResponse(outcome.response)
        if (isSuccess(status)) return succeeded(detail)
        return isTransient(status) ? tryAgain(detail) : failed(detail)
      }
    }
  })

  const attemptCustom = (
    { event, executionId, projectId }: Execution,
    { name, sceneId }: NamedScene,
    { params, uri }: CustomAction,
    id: string,
    attempt: number
  ): Effect.Effect<Attempt> => {
    const kind = actions.get(uri)
    // Another node may have it, for example while a new version of the application is rolled out.
    if (kind === undefined) {
      return Effect.succeed(
        tryAgain(`No action ${uri} is registered on this node: register it with SceneExtensions.layer`)
      )
    }
    return kind.attempt(params, { projectId, scene: { sceneId, name }, executionId, id, attempt, event })
  }

  const attemptAction = (
    execution: Execution,
    scene: NamedScene,
    position: number
  ): Effect.Effect<Attempt | PutOff, StoreError> => {
    const { action, attempts } = execution.outcomes[position]!
    switch (action._tag) {
      case "SetProperties":
      case "CallService":
        return tellDevice(execution, action, position)
      case "RunScene":
        return runScene(execution, action, position)
      case "Webhook":
        return sendWebhook(execution, scene, action, position)
      case "Delay":
        return Effect.succeed(succeeded(`${action.seconds} seconds pass`))
      case "Custom":
        return attemptCustom(execution, scene, action, idOf(execution, position), attempts + 1)
    }
  }

  const attempt = Effect.fnUntraced(function*(execution: Execution, scene: NamedScene, position: number) {
    const before = execution.outcomes[position]!
    const attempted = yield* attemptAction(execution, scene, position).pipe(
      // A failure that will not pass is not tried again.
      Effect.catchDefect(internalError),
      Effect.catchIf(({ retryable }: StoreError) => !retryable, internalError)
    )
    const { detail } = attempted
    if (attempted.status === "put-off") return { ...before, nextAt: attempted.until, hasWaited: true, detail }
    const { status } = attempted
    const at = yield* Clock.currentTimeMillis
    const attempts = before.attempts + 1
    const again = status === "pending" && attempts <= maxRetries
    return {
      action: before.action,
      status: status === "pending" && !again ? "failed" : status,
      attempts,
      nextAt: again ? at + retryDelay(attempts) : null,
      at,
      detail
    } satisfies ActionOutcome
  })

  return SceneActions.of({ attempt })
})
