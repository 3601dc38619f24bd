/**
 * Handlers of the routes by which files are uploaded.
 */
import {
  Objects,
  type ObjectTooLarge,
  Products,
  type ProjectId,
  type QuotaExceeded,
  type StoredObject,
  type StoreError
} from "@device-cloud/core"
import { ByteSize, Context, Effect, Stream } from "effect"
import { HttpIncomingMessage, HttpServerRequest, Multipart } from "effect/http"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { BodyUnreadable, invalidParameter, TooLarge } from "../Failure.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { type Caller, failWhenEnded } from "../middleware/Caller.ts"
import { makeObjectAddress } from "./ObjectAddress.ts"

/** Implements the group `objects`. */
export const layer = group(
  Api,
  "objects",
  Effect.fnUntraced(function*(handlers) {
    const objects = yield* Objects
    const products = yield* Products
    const addressOf = yield* makeObjectAddress

    /** An upload may take hours, in which its access key is removed. */
    const upload = Effect.fnUntraced(function*(caller: Caller) {
      const object = yield* Effect.raceFirst(storeFile(objects, caller.projectId), failWhenEnded(caller))
      return { object, url: yield* addressOf(object) }
    })
    return handlers
      .handleRaw(
        "uploadObject",
        () => CurrentPrincipal.use((caller) => respond(upload(caller), ({ object, url }) => ({ url, md5: object.md5 })))
      )
      .handleRaw(
        "uploadFirmwareFile",
        ({ params }) =>
          CurrentPrincipal.use((caller) =>
            respond(
              Effect.andThen(products.get(caller.projectId, params.product_key), upload(caller)),
              ({ object, url }) => ({ filename: url, size: object.size, md5: object.md5 })
            )
          )
      )
  })
)

/**
 * Stores the first file of the form in the field `file`. Reads the form to its
 * end, which shows whether all of it has arrived.
 */
const storeFile = Effect.fnUntraced(function*(objects: Objects["Service"], projectId: ProjectId) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!/^multipart\/form-data\b/i.test(request.headers["content-type"] ?? "")) return yield* Effect.fail(noFile)
  let stored: StoredObject | undefined
  const take = (
    part: Multipart.Part
  ): Effect.Effect<void, Multipart.MultipartError | ObjectTooLarge | QuotaExceeded | StoreError> => {
    if (!Multipart.isFile(part)) return Effect.void
    if (part.key !== "file" || stored !== undefined) return Stream.runDrain(part.content)
    return Effect.map(objects.upload(projectId, part.name, part.content), (object) => {
      stored = object
    })
  }
  yield* Stream.runForEach(request.multipartStream, take).pipe(
    Effect.onError(() =>
      stored === undefined ? Effect.void : Effect.ignore(objects.remove(projectId, stored.objectId))
    ),
    Effect.provideContext(limits),
    Effect.catchIf(Multipart.isMultipartError, ({ reason }) =>
      Effect.fail(
        reason._tag === "FieldTooLarge" ? fieldTooLarge : reason._tag === "TooManyParts" ? tooManyParts : notAForm
      ))
  )
  return stored ?? (yield* Effect.fail(noFile))
})

const noFile = invalidParameter([{
  path: ["file"],
  message: "Expected a multipart form with a file in the field file"
}])

const notAForm = BodyUnreadable.make({ message: "The body is not a well formed multipart form" })

const maxParts = 100
const maxFieldKibibytes = 64

const fieldTooLarge = TooLarge.make({
  message: `A field of the form has more than ${maxFieldKibibytes} KiB; expected a file in the field file`
})

const tooManyParts = TooLarge.make({ message: `The form has more than ${maxParts} fields` })

/** The store limits the size of the file. */
const limits = Context.merge(
  Multipart.limitsServices({
    maxParts,
    maxFieldSize: ByteSize.kibibytes(maxFieldKibibytes),
    fieldMimeTypes: []
  }),
  Context.make(HttpIncomingMessage.MaxBodySize, undefined)
)
