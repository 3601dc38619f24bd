/**
 * Creates, reads, lists and removes firmware.
 */
import { Clock, Context, Effect, Layer, Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import { decodeInput, InvalidInput } from "../../kernel/InvalidInput.ts"
import { type Page, paged, type PageRequest } from "../../kernel/Page.ts"
import { type ProductKey, ProductNotFound } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import {
  type Firmware,
  type FirmwareDetail,
  FirmwareDraft,
  type FirmwareFilter,
  FirmwareNotFound,
  type FirmwareSignature,
  FirmwareState,
  FirmwareVersionTaken,
  moduleNamed
} from "./Firmware.ts"
import type { StoredObject } from "../../object/StoredObject.ts"
import { FirmwareFiles } from "./FirmwareFiles.ts"
import { ImageSignatures } from "./ImageSignatures.ts"
import { OtaStore } from "../task/OtaStore.ts"

export class Firmwares extends Context.Service<Firmwares, {
  /**
   * Creates a firmware in status `unverified`. Fails with `InvalidInput` if the
   * draft is not valid, contradicts the file that this cloud stores, or is not
   * signed as the product asks for, with `ProductNotFound` if the project has no
   * such product, with `FirmwareVersionTaken` if the product has this version of the
   * module already, and with `FirmwareNotFound` if somebody removes the new
   * firmware before it is read back.
   */
  readonly create: (
    projectId: ProjectId,
    productKey: ProductKey,
    draft: FirmwareDraft
  ) => Effect.Effect<
    FirmwareDetail,
    InvalidInput | ProductNotFound | FirmwareVersionTaken | FirmwareNotFound | StoreError
  >
  /** Reads one firmware of the project. */
  readonly get: (
    projectId: ProjectId,
    firmwareId: Firmware["firmwareId"]
  ) => Effect.Effect<FirmwareDetail, FirmwareNotFound | StoreError>
  /** A page of the project's firmware, newest first. */
  readonly list: (
    projectId: ProjectId,
    filter: FirmwareFilter,
    page: PageRequest
  ) => Effect.Effect<Page<FirmwareDetail>, InvalidInput | StoreError>
  /** Removes a firmware and its ended tasks. Fails with `FirmwareState` while a task has not ended. */
  readonly remove: (
    projectId: ProjectId,
    firmwareId: Firmware["firmwareId"]
  ) => Effect.Effect<void, FirmwareNotFound | FirmwareState | StoreError>
}>()("@device-cloud/core/ota/firmware/Firmwares") {
  static readonly layer: Layer.Layer<Firmwares, never, OtaStore | FirmwareFiles | ImageSignatures> = Layer.effect(
    Firmwares,
    Effect.suspend(() => make)
  )
}

const decodeDraft = decodeInput(FirmwareDraft)

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const files = yield* FirmwareFiles
  const signatures = yield* ImageSignatures

  /** Fails unless the file is signed as its product asks for. */
  const checkSignature = Effect.fnUntraced(
    function*(
      projectId: ProjectId,
      productKey: ProductKey,
      signature: string,
      file: StoredObject | undefined
    ): Effect.fn.Return<FirmwareSignature | null, InvalidInput | StoreError> {
      const refuse = (name: string, message: string) => new InvalidInput({ issues: [{ path: [name], message }] })
      const key = Option.getOrUndefined(yield* store.signingKey(projectId, productKey))
      if (key === undefined) {
        return signature === "" ? null : yield* refuse("signature", "Expected none: the product has no signing key")
      }
      if (signature === "") return yield* refuse("signature", "Expected one: the product has a signing key")
      if (file === undefined) {
        return yield* refuse("ossPath", "Expected a file that is stored here: its signature is checked")
      }
      const bytes = Base64.decode(signature)
      if (Result.isFailure(bytes)) return yield* refuse("signature", "Expected base64")
      const isRight = yield* signatures.verify(key, bytes.success, files.content(file))
      return isRight
        ? { signature, keyId: key.keyId, algorithm: key.algorithm }
        : yield* refuse("signature", `Expected a signature of the file by the key ${key.keyId}`)
    }
  )

  const create = Effect.fn("Firmwares.create")(
    function*(projectId: ProjectId, productKey: ProductKey, input: FirmwareDraft) {
      const { module: name, remark = "", signature = "", ...draft } = yield* decodeDraft(input)
      const module = moduleNamed(name)
      const hash = draft.hash.toLowerCase()
      const sha256 = draft.sha256?.toLowerCase() ?? ""
      const file = Option.getOrUndefined(yield* files.find({ ...draft, projectId }))
      // With a wrong digest, no device could use the firmware.
      if (file !== undefined && file.md5 !== hash) {
        const message = `Expected ${file.md5}, the MD5 of the file at this address`
        return yield* new InvalidInput({ issues: [{ path: ["hash"], message }] })
      }
      if (file?.sha256 !== undefined && sha256 !== "" && file.sha256 !== sha256) {
        const message = `Expected ${file.sha256}, the SHA-256 of the file at this address`
        return yield* new InvalidInput({ issues: [{ path: ["sha256"], message }] })
      }
      const signed = yield* checkSignature(projectId, productKey, signature, file)
      // A device wants to know the size before it downloads.
      const size = draft.size ?? file?.size ?? 0
      const now = yield* Clock.currentTimeMillis
      const stored = yield* store.insertFirmware({
        ...draft,
        projectId,
        productKey,
        hash,
        sha256,
        signed,
        module,
        remark,
        size,
        status: "unverified",
        createdAt: now,
        updatedAt: now
      })
      if (stored === "no-product") return yield* new ProductNotFound({ productKey })
      if (stored === "taken") return yield* new FirmwareVersionTaken({ productKey, module, version: draft.version })
      return yield* get(projectId, stored.firmwareId)
    }
  )

  const get = Effect.fn("Firmwares.get")(function*(projectId: ProjectId, firmwareId: number) {
    return yield* Effect.fromOption(
      yield* store.firmware(projectId, firmwareId),
      () => new FirmwareNotFound({ firmwareId })
    )
  })

  const remove = Effect.fn("Firmwares.remove")(function*(projectId: ProjectId, firmwareId: number) {
    const outcome = yield* store.removeFirmware(projectId, firmwareId)
    if (outcome === "not-found") return yield* new FirmwareNotFound({ firmwareId })
    if (outcome === "ongoing") {
      return yield* new FirmwareState({
        firmwareId,
        reason: "it has a task that has not ended, or whose devices still finish; cancel them first"
      })
    }
  })

  return Firmwares.of({ create, get, list: paged(store.listFirmwares), remove })
})
