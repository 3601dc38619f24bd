/**
 * Carries out the steps of a plan through the management services of any node.
 */
import {
  type Command,
  Commands,
  type DeviceCloud,
  type DeviceIdentity,
  Devices,
  Firmwares,
  type ProjectId,
  Shadows,
  UpgradeTasks
} from "@device-cloud/core"
import { Effect, Option } from "effect"
import type { Fleet } from "./Fleet.ts"
import type { World } from "./FleetDevice.ts"
import type { Step } from "./Plan.ts"
import { SeededRandom } from "./SeededRandom.ts"

/** Returns what carries a step out. A step about a device that the plan has not does nothing. */
export const make = (fleet: Fleet, world: World) => {
  const { cluster, time, witness } = world
  const random = new SeededRandom(world.seed, "operators' nodes")

  /** Runs a call on some node. What the cloud refuses has not happened. */
  const call = <A, E>(effect: Effect.Effect<A, E, DeviceCloud.DeviceCloud>, then: (result: A) => void = () => {}) => {
    const node = world.pickNode(random)
    node?.process.soon(() =>
      cluster.fork(node, Effect.ignore(Effect.map(effect, (result) => node.process.isKilled || then(result))))
    )
  }

  const issue = (step: Step & { readonly act: "set" | "call" | "tell" | "desire" }, device: DeviceIdentity) => {
    const { deviceId, projectId } = device
    const { ttl, value } = step
    const told = (command: Command) => witness.issued(command)
    switch (step.act) {
      case "set":
        return call(Commands.use((_) => _.setProperties(projectId, deviceId, { target: value }, { ttl })), told)
      case "call":
        return call(Commands.use((_) => _.callService(projectId, deviceId, "move", { to: value }, { ttl })), told)
      case "tell":
        return call(
          Commands.use((_) =>
            _.sendUserMessage(projectId, deviceId, { topic: "display", payload: String(value), encoding: "utf8" }, {
              ttl
            })
          ),
          ({ command }) => told(command)
        )
      case "desire":
        return call(Shadows.use((_) => _.desire(projectId, deviceId, { target: value })))
    }
  }

  const upgrade = (step: Step & { readonly act: "upgrade" }, projectId: ProjectId, productKey: string) => {
    const version = `1.0.${step.firmware}`
    call(
      Effect.gen(function*() {
        const { firmware } = yield* (yield* Firmwares).create(projectId, productKey as never, {
          name: "firmware",
          version,
          ossPath: `https://files.example.com/${version}.bin`,
          algorithms: "md5",
          hash: "0".repeat(32)
        })
        return yield* (yield* UpgradeTasks).createUpgradeTask(projectId, firmware.firmwareId, {
          scopeMode: "all",
          cloudPush: step.push,
          timeout: 300,
          retryCount: step.retries,
          retryInterval: 60
        })
      }),
      ({ taskId }) => {
        witness.campaign(projectId, taskId)
        if (step.cancelAfter === 0) return
        time.after(step.cancelAfter * 1000, () => call(UpgradeTasks.use((_) => _.cancel(projectId, taskId))))
      }
    )
  }

  return (step: Step): void => {
    if (step.act === "upgrade") {
      const { direct, projectId } = fleet.projects[step.project]!
      return upgrade(step, projectId, direct.productKey)
    }
    const member = fleet.devices.get(step.device)
    if (member === undefined) return
    const { identity } = member.own
    const { deviceId, projectId } = identity
    witness.note(`${step.act} ${identity.deviceName}`)
    switch (step.act) {
      case "disable":
        call(Devices.use((_) => _.disable(projectId, deviceId)))
        return void time.after(step.lasts * 1000, () => call(Devices.use((_) => _.enable(projectId, deviceId))))
      case "delete":
        witness.deleted(identity)
        return call(Devices.use((_) => _.remove(projectId, deviceId)))
      case "trespass": {
        const other = fleet.projects.find((each) => each.projectId !== projectId)!.projectId
        return call(
          Effect.option(Devices.use((_) => _.get(other, { deviceId }))),
          (found) => witness.trespassed(identity, Option.isSome(found))
        )
      }
      default:
        return issue(step, step.sub === 0 ? identity : member.subDevices[step.sub - 1]?.identity ?? identity)
    }
  }
}
