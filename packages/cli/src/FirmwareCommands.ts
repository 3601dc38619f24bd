/**
 * `device-cloud firmware upload`: a file, from this machine to a firmware.
 */
import { FirmwareVersion } from "@device-cloud/core"
import { DeviceCloudClient } from "@device-cloud/http"
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { createHash } from "node:crypto"
import { createReadStream, openAsBlob } from "node:fs"
import { basename } from "node:path"
import { explain, failure, usage } from "./CommandFailure.ts"
import * as Output from "./Output.ts"
import { patiently, Server } from "./Server.ts"

const uploadCommand = Command.make(
  "upload",
  {
    product: Argument.String("product-key"),
    file: Argument.String("file"),
    // Before the file is stored, which counts towards the quota of the project.
    version: Argument.String("version").pipe(Argument.withSchema(FirmwareVersion)),
    name: Flag.String("name").pipe(Flag.withDescription("Default: the name of the file"), Flag.optional),
    module: Flag.String("module").pipe(Flag.withDescription("Default: default"), Flag.optional),
    remark: Flag.String("remark").pipe(Flag.optional),
    signature: Flag.String("signature").pipe(
      Flag.withDescription("Base64; needed if the product has a signing key"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ file, module, name, product, remark, signature, version }) {
    const { url } = yield* Server
    const cloud = yield* DeviceCloudClient
    const { md5, sha256 } = yield* Effect.tryPromise({
      try: () => hashes(file),
      catch: (error) => usage(`${file} cannot be read: ${(error as Error).message}`)
    })
    const form = new FormData()
    form.set("file", yield* Effect.promise(() => openAsBlob(file)), basename(file))

    const { data: stored } = yield* patiently(cloud.objects.uploadFirmwareFile({
      params: { product_key: product as never },
      payload: form
    })).pipe(Effect.mapError(explain(url)))
    if (stored.md5 !== md5) {
      return yield* failure(`The file was damaged on its way: its MD5 is ${md5}, what is stored has ${stored.md5}`)
    }
    const { data } = yield* patiently(cloud.ota.createFirmware({
      params: { product_key: product as never },
      payload: {
        name: Option.getOrElse(name, () => basename(file)),
        version,
        oss_path: stored.filename as never,
        algorithms: "md5",
        hash: md5 as never,
        sha256: sha256 as never,
        ...Option.isSome(module) ? { module: module.value as never } : {},
        ...Option.isSome(remark) ? { remark: remark.value as never } : {},
        ...Option.isSome(signature) ? { signature: signature.value as never } : {}
      }
    })).pipe(Effect.mapError(explain(url)))
    if (yield* Output.json(data)) return
    yield* Console.log(
      `Firmware ${data.id}: ${data.name} ${data.version}, ${data.size} bytes, SHA-256 ${data.sha256}.\n` +
        `Next: device-cloud firmware verify ${data.id} --device-ids …, or device-cloud firmware upgrade ${data.id}`
    )
  })
).pipe(
  Command.withDescription(
    "Upload a file and make a firmware of it. The cloud checks its MD5 and SHA-256, which are computed here."
  ),
  Command.withShortDescription("Upload a file and make a firmware of it")
)

/** The commands that the API has no operation for. */
export const firmwareCommands = [Command.provide(uploadCommand, Server.layer)]

const hashes = async (file: string) => {
  const md5 = createHash("md5")
  const sha256 = createHash("sha256")
  for await (const chunk of createReadStream(file)) {
    md5.update(chunk as Buffer)
    sha256.update(chunk as Buffer)
  }
  return { md5: md5.digest("hex"), sha256: sha256.digest("hex") }
}
