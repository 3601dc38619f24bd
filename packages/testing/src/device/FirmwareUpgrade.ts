/**
 * How a simulated device carries out an upgrade (docs/protocol/upgrades.md).
 */
import type { Json, StoreError } from "@device-cloud/core"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { SimulatedDevice } from "../SimulatedDevice.ts"
import type { DeviceTriple, LinkError } from "./DeviceLink.ts"
import { Refusal } from "./Refusal.ts"

/** What the cloud says of the firmware that it has for a device. */
export interface UpgradeOffer {
  readonly version: string
  readonly module: string
  /** Bytes; 0: not known. */
  readonly size: number
  readonly sign: string
  readonly signMethod: "Md5" | "SHA256"
  /** The address of the file, unless it comes in blocks. */
  readonly url?: string
  /** The file comes in blocks, over the connection of the device. */
  readonly streamId?: number
  readonly streamFileId?: number
  readonly extData: Json
}

/** Firmware that has been downloaded and compared with its hash. */
export interface FirmwareImage {
  readonly version: string
  readonly module: string
  readonly bytes: Uint8Array
  readonly offer: UpgradeOffer
}

/** Bytes of each block that a device asks for. */
const blockSize = 65_536

/** Percent of an upgrade that its download is. */
const downloadShare = 90

/** What a device reports in place of a percentage when an upgrade fails. */
const failedStep = { download: -2, verification: -3, installation: -4 } as const

type Device = SimulatedDevice<DeviceTriple>

/**
 * Downloads the firmware in blocks or from its address, reports the progress,
 * compares the hash, installs, and reports the new version. What fails is
 * reported, and the effect succeeds.
 */
export const upgrade = (
  device: Device,
  offer: UpgradeOffer,
  install: (image: FirmwareImage, device: Device) => Effect.Effect<void, Refusal>
): Effect.Effect<void, StoreError | LinkError> => {
  const { module, sign, signMethod, version } = offer
  const progress = (step: number, desc: string) =>
    Effect.asVoid(device.send("thing.ota.progress", { step: String(step), desc, module }))
  /** Reports where the upgrade has failed. */
  const failed = (step: keyof typeof failedStep) => ({ reason }: Refusal) => progress(failedStep[step], reason)

  const installed = (bytes: Uint8Array) =>
    Effect.matchEffect(install({ version, module, bytes, offer }, device), {
      onFailure: failed("installation"),
      onSuccess: () => Effect.andThen(progress(100, "installed"), device.inform(version, module))
    })

  return Effect.matchEffect(download(device, offer, (percent) => progress(percent, "downloading")), {
    onFailure: (error) => error._tag === "Refusal" ? failed("download")(error) : Effect.fail(error),
    onSuccess: (bytes) => {
      const hash = createHash(signMethod === "SHA256" ? "sha256" : "md5").update(bytes).digest("hex")
      return hash === sign.toLowerCase()
        ? installed(bytes)
        : failed("verification")(
          new Refusal({ code: 100_000, reason: `The ${signMethod} is ${hash}, expected ${sign}` })
        )
    }
  })
}

/** Returns the bytes of the firmware. */
const download = Effect.fnUntraced(function*(
  device: Device,
  { size, streamFileId, streamId, url }: UpgradeOffer,
  progress: (percent: number) => Effect.Effect<void, StoreError | LinkError>
): Effect.fn.Return<Uint8Array, StoreError | LinkError | Refusal> {
  yield* progress(1)
  if (streamId === undefined || streamFileId === undefined) return yield* device.download(url!)
  const fileInfo = { streamId, fileId: streamFileId }
  const blocks: Array<Uint8Array> = []
  for (let offset = 0; offset < size;) {
    const { bytes, code, message } = yield* device.send("thing.file.download", {
      fileInfo,
      fileBlock: { size: Math.min(blockSize, size - offset), offset }
    })
    if (code !== 200 || bytes === undefined) return yield* new Refusal({ code, reason: message })
    blocks.push(bytes)
    offset += bytes.length
    yield* progress(Math.max(1, Math.floor((downloadShare * offset) / size)))
  }
  return new Uint8Array(Buffer.concat(blocks))
})
