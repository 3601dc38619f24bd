import { DeviceReply } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { checkedReply } from "../src/uplink/CheckedReply.ts"

it("large data that is encoded already is not walked through for each reply", () => {
  let looks = 0
  const data = {
    get model() {
      looks++
      return "large"
    }
  }
  const reply = DeviceReply.success(data)
  assert.strictEqual(checkedReply(reply), reply)
  assert.strictEqual(looks, 1)
  const encoded = { ...reply, encodedData: new TextEncoder().encode(`{"model":"large"}`) }
  assert.strictEqual(checkedReply(encoded), encoded)
  assert.strictEqual(looks, 1)
})
