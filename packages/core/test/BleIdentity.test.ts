import { bleAnswer, Mac } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"

const random = Uint8Array.from({ length: 16 }, (_, i) => i)

layer(PlatformNode.layer)("the identity of a device over Bluetooth", (it) => {
  it.effect("agrees with the published vectors", () =>
    Effect.gen(function*() {
      const mac = yield* Mac
      const published = { productKey: "00000a44", deviceName: "109e3a23710b" }
      assert.deepStrictEqual(
        bleAnswer(mac, { ...published, deviceSecret: "d387e7ecbee20d930055fb53f6a96c2a" }, random),
        { bleKey: "71ae82aebab3ff498e69dba08f5391c5", cipher: "cebd9b62593c64ac163e28796613c5e7" }
      )
      const ours = { productKey: "a1PkDirect01", deviceName: "dev001" }
      assert.deepStrictEqual(
        bleAnswer(mac, { ...ours, deviceSecret: "0123456789abcdef0123456789abcdef" }, random),
        { bleKey: "0e1c75899ec621729845bcc6e31ddee8", cipher: "0cddca1f872c3c2b3e80326124593c37" }
      )
    }))
})
