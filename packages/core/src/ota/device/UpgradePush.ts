/**
 * Tells connected devices that there is firmware for them, on whatever node they
 * are connected to.
 */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { NodeBus } from "../../cluster/NodeBus.ts"
import { DeviceSessions } from "../../connection/DeviceSessions.ts"
import { DeviceId } from "../../device/Device.ts"
import type { Json } from "../../kernel/Json.ts"
import { type StoreError, untilStored } from "../../kernel/StoreError.ts"
import { FirmwareFiles } from "../firmware/FirmwareFiles.ts"
import { OtaStore } from "../task/OtaStore.ts"
import type { Assignment, DownloadProtocol } from "../task/UpgradeTask.ts"
import { upgradeData, upgradeMethod } from "./UpgradeMessage.ts"
import { UpgradeSteps } from "./UpgradeSteps.ts"

export class UpgradePush extends Context.Service<UpgradePush, {
  /**
   * What the device needs to download the firmware. `protocol` is the device's own
   * wish; default: the protocol of the task. A file that cannot be sent over MQTT
   * is offered with its address.
   */
  readonly offer: (assignment: Assignment, protocol?: DownloadProtocol) => Effect.Effect<Json>
  /** Whether the device is connected to this node. */
  readonly isHere: (assignment: Assignment) => boolean
  /**
   * Moves the devices, which are connected to this node, to `upgrading` and sends them
   * their offers. Asks the other nodes for those that have left meanwhile.
   */
  readonly push: (
    assignments: ReadonlyArray<Assignment>,
    protocol?: DownloadProtocol
  ) => Effect.Effect<void, StoreError>
  /** Asks the other nodes to push to those of the devices that are connected to them. */
  readonly pushElsewhere: (assignments: ReadonlyArray<Assignment>) => Effect.Effect<void>
}>()("@device-cloud/core/ota/device/UpgradePush") {
  /** Pushes also what other nodes ask for. */
  static readonly layer: Layer.Layer<
    UpgradePush,
    never,
    OtaStore | UpgradeSteps | FirmwareFiles | DeviceSessions | NodeBus
  > = Layer.effect(UpgradePush, Effect.suspend(() => make))
}

/** Upgrades that are due for devices of other nodes. */
const UpgradeDue = NodeBus.channel("ota/due", Schema.Struct({ deviceId: DeviceId, taskId: Schema.Int }))

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const steps = yield* UpgradeSteps
  const files = yield* FirmwareFiles
  const sessions = yield* DeviceSessions
  const due = yield* UpgradeDue

  const offer = Effect.fnUntraced(
    function*(assignment: Assignment, protocol: DownloadProtocol = assignment.task.downloadProtocol) {
      if (protocol === "https") return upgradeData(assignment)
      const file = yield* files.find(assignment.firmware).pipe(
        // The object store is the application's: that it throws keeps nobody else from being told.
        Effect.catchCause((cause) =>
          Effect.as(Effect.logError("The file of a firmware could not be found", cause), Option.none())
        )
      )
      return upgradeData(assignment, file)
    }
  )

  const pushElsewhere = (assignments: ReadonlyArray<Assignment>) =>
    due.publish(assignments.map(({ record: { deviceId, taskId } }) => ({ deviceId, taskId }))).pipe(
      // Records that have not begun are due again in some seconds; a device whose record has begun reports its version.
      Effect.catch((error) => Effect.logWarning("Other nodes could not be told of upgrades", error))
    )

  const push = Effect.fnUntraced(function*(assignments: ReadonlyArray<Assignment>, protocol?: DownloadProtocol) {
    const at = yield* Clock.currentTimeMillis
    const handedOut = yield* steps.take(
      assignments.map((assignment) => ({ assignment, event: { _tag: "HandedOut", at } }))
    )
    for (let doubt = sessions.doubt(); doubt !== undefined; doubt = sessions.doubt()) yield* doubt
    const moved: Array<Assignment> = []
    for (const assignment of handedOut) {
      const { deviceId, status } = assignment.record
      if (status !== "upgrading") continue
      const message = { method: upgradeMethod, params: yield* offer(assignment, protocol) }
      if (!(yield* sessions.deliver(deviceId, message))) moved.push(assignment)
    }
    // They have begun, and nobody else would tell them.
    if (moved.length > 0) yield* pushElsewhere(moved)
  })

  yield* due.subscribe({
    heard: ({ deviceId, taskId }) =>
      sessions.session(deviceId) === undefined
        ? Effect.void
        : store.record(deviceId, taskId).pipe(
          // The store may begin it and lose its answer: then nobody else would tell it.
          Effect.flatMap((found) => untilStored(push(Option.toArray(found)))),
          Effect.catch((error) => Effect.logWarning("An upgrade that another node found due was not told", error))
        ),
    // The records are due again in some seconds.
    missed: Effect.void
  })

  return UpgradePush.of({
    offer,
    isHere: ({ record }) => sessions.session(record.deviceId) !== undefined,
    push,
    pushElsewhere
  })
})
