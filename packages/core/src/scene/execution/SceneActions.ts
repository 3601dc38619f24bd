/**
 * Carries out the actions of executions, one attempt at a time.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Commands } from "../../command/Commands.ts"
import { type DeviceId } from "../../device/Device.ts"
import { DeviceStore } from "../../device/DeviceStore.ts"
import type { ProjectId } from "../../project/Project.ts"
import { Mac } from "../../kernel/Mac.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { type ActionOutcome, type Execution, maxChain } from "./Execution.ts"
import type { Action, Scene } from "../definition/Scene.ts"
import { deviceOf } from "../matching/SceneEvent.ts"
import { SceneStore } from "../definition/SceneStore.ts"
import { SceneTriggers } from "../matching/SceneTriggers.ts"
import { isTransient, maxRetries, retryDelay, webhookRequest } from "./Webhook.ts"
import { WebhookClient } from "./WebhookClient.ts"
import { WebhookSigning } from "./WebhookSigning.ts"

/** Of the answer to a webhook, in the outcome, in UTF-16 code units. */
const maxShownBody = 200

/** What an attempt has led to. */
type Attempt = Pick<ActionOutcome, "status" | "detail">

const succeeded = (detail: string): Attempt => ({ status: "succeeded", detail })
const failed = (detail: string): Attempt => ({ status: "failed", detail })
const skipped = (detail: string): Attempt => ({ status: "skipped", detail })

type DeviceAction = Action & { readonly _tag: "SetProperties" | "CallService" }

const internalError = (cause: unknown) =>
  Effect.as(Effect.logError("An action of a scene could not be carried out", cause), failed("Internal error"))

const make = Effect.gen(function*() {
  const commands = yield* Commands
  const devices = yield* DeviceStore
  const store = yield* SceneStore
  const triggers = yield* SceneTriggers
  const client = yield* WebhookClient
  const signing = yield* WebhookSigning
  const mac = yield* Mac

  const call = (projectId: ProjectId, action: DeviceAction, origin: string) =>
    action._tag === "SetProperties"
      ? commands.setProperties(projectId, action.deviceId, action.items, { origin })
      : commands.callService(projectId, action.deviceId, action.serviceId, action.items, { origin })

  const isMissing = (deviceId: DeviceId) => skipped(`Device ${deviceId} does not exist`)

  const tellDevice = Effect.fnUntraced(
    function*({ executionId, projectId }: Execution, action: DeviceAction, position: number) {
      const { deviceId } = action
      const found = Option.getOrUndefined(yield* devices.get(projectId, { deviceId }))
      if (found === undefined) return isMissing(deviceId)
      if (!found.device.enabled) return skipped(`Device ${deviceId} is disabled`)
      return yield* call(projectId, action, `${executionId}.${position}`).pipe(
        Effect.map(({ messageId }) => succeeded(`Message ${messageId}`)),
        Effect.catchTags({
          DeviceNotFound: () => Effect.succeed(isMissing(deviceId)),
          ElementNotFound: ({ id, type }) => Effect.succeed(failed(`The thing model has no ${type} ${id}`)),
          ServiceIsSync: ({ serviceId }) => Effect.succeed(failed(`Service ${serviceId} is synchronous`)),
          TooManyCommands: () => Effect.succeed(failed("Too many messages wait for the device")),
          InvalidInput: ({ issues }) => Effect.succeed(failed(issues[0].message)),
          InvalidValues: ({ issues }) => Effect.succeed(failed(`${issues[0].path.join(".")}: ${issues[0].message}`))
        })
      )
    }
  )

  const runScene = Effect.fnUntraced(
    function*(execution: Execution, { sceneId }: Action & { readonly _tag: "RunScene" }, position: number) {
      const { event, executionId, projectId } = execution
      const chain = [...execution.chain, execution.sceneId]
      if (chain.includes(sceneId)) {
        return { status: "loop", detail: `Scene ${sceneId} has led here: ${chain.join(", ")}` } satisfies Attempt
      }
      if (chain.length >= maxChain) {
        return {
          status: "loop",
          detail: `More than ${maxChain} scenes in a row: ${chain.join(", ")}`
        } satisfies Attempt
      }
      const target = Option.getOrUndefined(yield* store.get(projectId, sceneId))
      if (target === undefined) return skipped(`Scene ${sceneId} does not exist`)
      if (target.status === "disable") return skipped(`Scene ${sceneId} is disabled`)
      const at = yield* Clock.currentTimeMillis
      const next = { _tag: "RunByScene", at, sceneId: execution.sceneId, executionId, device: deviceOf(event) } as const
      // The same execution when the action is carried out again.
      const child = { ...triggers.execution(target, next, at), executionId: `${executionId}.${position}`, chain }
      yield* store.enqueue([child])
      triggers.wake()
      return succeeded(`Execution ${child.executionId}`)
    }
  )

  const callOut = Effect.fnUntraced(function*(
    execution: Execution,
    scene: Pick<Scene, "sceneId" | "name">,
    action: Action & { readonly _tag: "Webhook" },
    position: number
  ) {
    const now = yield* Clock.currentTimeMillis
    const keys = yield* signing.keys(execution.projectId)
    return yield* client.send(webhookRequest({ execution, scene, position, action, keys, mac, now })).pipe(
      Effect.map(({ body, status }): Attempt => {
        const answer = `Answered with ${status}`
        if (status >= 200 && status < 300) return succeeded(answer)
        const detail = body === "" ? answer : `${answer}: ${body.slice(0, maxShownBody)}`
        return { status: isTransient(status) ? "pending" : "failed", detail }
      }),
      Effect.catch(({ message, reason }) =>
        Effect.succeed<Attempt>({ status: reason === "forbidden" ? "failed" : "pending", detail: message })
      )
    )
  })

  const attempt = Effect.fnUntraced(function*(
    execution: Execution,
    scene: Pick<Scene, "sceneId" | "name">,
    position: number
  ) {
    const before = execution.outcomes[position]!
    const { action } = before
    const result: Attempt = yield* (action._tag === "Webhook"
      ? callOut(execution, scene, action, position)
      : action._tag === "RunScene"
      ? runScene(execution, action, position)
      : tellDevice(execution, action, position)).pipe(
        // What will not pass is not tried again and again.
        Effect.catchDefect(internalError),
        Effect.catchIf(({ retryable }: StoreError) => !retryable, internalError)
      )
    const at = yield* Clock.currentTimeMillis
    const attempts = before.attempts + 1
    const again = result.status === "pending" && attempts <= maxRetries
    return {
      action,
      status: result.status === "pending" && !again ? "failed" : result.status,
      attempts,
      nextAt: again ? at + retryDelay(attempts) : null,
      at,
      detail: result.detail
    } satisfies ActionOutcome
  })

  return SceneActions.of({ attempt })
})

export class SceneActions extends Context.Service<SceneActions, {
  /**
   * Tries the action at the place, from 0, and answers its outcome. What has
   * been done before it could be noted is done again under the same id.
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
    Commands | DeviceStore | SceneStore | SceneTriggers | WebhookClient | WebhookSigning | Mac
  > = Layer.effect(SceneActions, make)
}
