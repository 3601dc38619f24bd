/**
 * The methods with which a device reads the thing model of its product
 * (docs/protocol/thing-models.md).
 */
import { Effect, Option, Result } from "effect"
import type { DeviceIdentity } from "../../device/Device.ts"
import type { Json } from "../../kernel/Json.ts"
import * as ModelFormat from "../../thing-model/ModelFormat.ts"
import { emptyModel } from "../../thing-model/ThingModel.ts"
import { ThingModelStore } from "../../thing-model/ThingModelStore.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { success } from "../DeviceReply.ts"

const read = ({ productKey }: DeviceIdentity) =>
  Effect.map(
    ThingModelStore.use((models) => models.latest(productKey)),
    (latest) => {
      const { model, version } = Option.getOrElse(latest, () => ({ model: emptyModel, version: 0 }))
      return success(ModelFormat.encode("tsl", { model, productKey, version }) as Json)
    }
  )

/** Both names ask for the same. */
export const methods = ["thing.dsltemplate.get", "thing.dynamicTsl.get"].map((name) =>
  DeviceMethod.request({
    name,
    decode: () => Result.succeed(undefined),
    handle: (_, { device }) => read(device)
  })
)
