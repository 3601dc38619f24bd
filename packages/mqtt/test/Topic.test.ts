import { DeviceName, ProductKey } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { methodPrefix, route } from "../src/topics/Topic.ts"

const owner = { productKey: ProductKey.make("pk"), deviceName: DeviceName.make("dn") }

it.each(["constructor", "toString", "__proto__", "", "/ota/device/", "/ota/device/unknown/"])(
  "nothing is carried on %spk/dn",
  (start) => assert.isUndefined(route(`${start}pk/dn`, methodPrefix(owner), owner))
)

it("versions and progress are told below /ota/device", () => {
  const methods = ["inform", "progress"].map((what) =>
    route(`/ota/device/${what}/pk/dn`, methodPrefix(owner), owner)?.method
  )
  assert.deepStrictEqual(methods, ["thing.ota.inform", "thing.ota.progress"])
})
