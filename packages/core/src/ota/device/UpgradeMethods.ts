/**
 * The device methods of upgrades (docs/protocol/upgrades.md).
 */
import { Effect, Layer, Result } from "effect"
import * as DeviceMethod from "../../uplink/DeviceMethod.ts"
import { DeviceMethods } from "../../uplink/DeviceMethods.ts"
import { type DeviceReply, fieldError, success } from "../../uplink/DeviceReply.ts"
import { Upgrades } from "./Upgrades.ts"
import { downloadMethod, parseBlockRequest } from "./BlockRequest.ts"
import { FirmwareBlocks } from "./FirmwareBlocks.ts"
import { inform, moduleOf, progress, protocolOf, type UpgradeReport } from "./UpgradeMessage.ts"

const reportOf = (report: UpgradeReport | DeviceReply): Result.Result<UpgradeReport, DeviceReply> =>
  "_tag" in report ? Result.succeed(report) : Result.fail(report)

/** What devices say of versions and progress, in the order in which they say it. */
const report = Effect.fnUntraced(function*(requests: ReadonlyArray<DeviceMethod.DeviceRequest<UpgradeReport>>) {
  const upgrades = yield* Upgrades
  yield* upgrades.report(requests.map(({ request }) => request))
  return requests.map(() => success({}))
})

const methods = [
  DeviceMethod.requests({
    name: "thing.ota.inform",
    form: "notice",
    action: "PostOTA",
    decode: ({ device, params, receivedAt }) => reportOf(inform(device, params, receivedAt)),
    handle: report
  }),
  DeviceMethod.requests({
    name: "thing.ota.progress",
    form: "notice",
    action: "PostOTA",
    decode: ({ device, params, receivedAt }) => reportOf(progress(device, params, receivedAt)),
    handle: report
  }),
  DeviceMethod.request({
    name: "thing.ota.firmware.get",
    action: "PostOTA",
    decode: ({ params }) => {
      const module = moduleOf(params)
      return module === undefined
        ? Result.fail(fieldError("module", "expected 1 to 64 letters, digits and _ . -"))
        : Result.succeed({ module, protocol: protocolOf(params) })
    },
    handle: ({ module, protocol }, { device }) =>
      Effect.map(Upgrades.use((upgrades) => upgrades.fetch(device, module, protocol)), success)
  })
]

const download = DeviceMethod.requests({
  name: downloadMethod,
  form: "file",
  lane: "downloads",
  decode: ({ params }) => Result.succeed(parseBlockRequest(params)),
  handle: (requests) =>
    FirmwareBlocks.use((blocks) =>
      blocks.read(requests.map(({ message: { device }, request }) => ({ device, request })))
    )
})

export const layer: Layer.Layer<never, never, DeviceMethods | Upgrades | FirmwareBlocks> = Layer.effectDiscard(
  DeviceMethods.use((registry) => Effect.andThen(registry.register(methods), registry.register([download]))).pipe(
    Effect.orDie
  )
)
