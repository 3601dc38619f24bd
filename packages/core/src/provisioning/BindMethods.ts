/**
 * The method with which a device that has joined reports its random
 * (docs/protocol/provisioning.md).
 */
import { Effect, Result, Schema } from "effect"
import * as DeviceMethod from "../uplink/DeviceMethod.ts"
import { fieldError, success } from "../uplink/DeviceReply.ts"
import { BindReport, reportRandom } from "./Binding.ts"
import { BindingStore } from "./BindingStore.ts"

const read = Schema.decodeUnknownOption(BindReport)

const bindPost = DeviceMethod.request({
  name: "thing.bind.post",
  form: "open",
  action: "PostSysMsg",
  decode: ({ params }) => Result.fromOption(read(params), () => fieldError("random", "expected 8 to 32 characters")),
  handle: Effect.fnUntraced(function*({ random }, { device, receivedAt }) {
    const bindings = yield* BindingStore
    const counts = yield* bindings.modify(device.deviceId, (binding) => reportRandom(binding, random, receivedAt))
    return counts ? success({}) : fieldError("random", "expected the one that the cloud has made")
  })
})

export const methods = [bindPost]
