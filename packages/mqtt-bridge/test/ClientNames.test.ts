import { DeviceName, ProductKey } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { namesDevice, refusalOf } from "../src/ClientNames.ts"

const device = { productKey: ProductKey.make("pk"), deviceName: DeviceName.make("desk") }

it.each(["pk.desk", "pk&desk", "pk.desk|signmethod=hmacsha256,authType=1|", "pk&desk|"])(
  "a client id that names the device is its own: %s",
  (clientId) => {
    assert.isTrue(namesDevice(device, clientId))
    assert.isUndefined(refusalOf(device, clientId))
  }
)

it.each(["", "desk", "pk", "pk.desk2", "pk.des", "pk-desk", "qk.desk", "pk.desk.|", "pk.desk|\"|", "pk.desk|\n|"])(
  "any other client id is refused: %j",
  (clientId) => {
    assert.isFalse(namesDevice(device, clientId))
    assert.match(refusalOf(device, clientId)!, /client id: expected/)
  }
)

it.each(["a.b", "a*", "#", "+", "a/b"])("a name that the broker would read as another topic is refused: %s", (name) => {
  const odd = { ...device, deviceName: DeviceName.make(name) }
  assert.match(refusalOf(odd, `pk.${name}`)!, /names of devices/)
})
