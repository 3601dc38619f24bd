/**
 * The methods with which a device reads the thing model of its product
 * (docs/protocol/thing-models.md).
 */
import { Effect, Result } from "effect"
import { ModelCache } from "../../thing-model/ModelCache.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { type DeviceReply, success } from "../DeviceReply.ts"

/** Both names ask for the same. */
export const methods = ["thing.dsltemplate.get", "thing.dynamicTsl.get"].map((name) =>
  DeviceMethod.request({
    name,
    decode: () => Result.succeed(undefined),
    handle: (_, { device }) =>
      Effect.map(
        ModelCache.use((models) => models.tslOf(device.productKey)),
        ({ bytes, document }): DeviceReply => ({ ...success(document), encodedData: bytes })
      )
  })
)
