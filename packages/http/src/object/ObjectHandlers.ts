/**
 * What the routes do by which files are uploaded.
 */
import {
  Objects,
  type ObjectTooLarge,
  Products,
  type ProjectId,
  type StoredObject,
  type StoreError
} from "@device-cloud/core"
import { ByteSize, Context, Effect, Stream } from "effect"
import { HttpIncomingMessage, HttpServerRequest, Multipart } from "effect/http"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { Code, type Failure, failure, failWith, invalidParameter } from "../Failure.ts"
import { group } from "../HandlerGroup.ts"
import { addressOf } from "./ObjectAddress.ts"

const noFile = invalidParameter([{
  path: ["file"],
  message: "Expected a multipart form with a file in the field file"
}])

/** The store sets the limit of the file, whatever it contains. */
const limits = Context.merge(
  Multipart.limitsServices({ maxParts: 100, maxFieldSize: ByteSize.kibibytes(64), fieldMimeTypes: [] }),
  Context.make(HttpIncomingMessage.MaxBodySize, undefined)
)

/** Stores the first file of the form that is called `file`, and answers with it and its address. */
const upload = Effect.fnUntraced(function*(objects: Objects["Service"], projectId: ProjectId) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!/^multipart\/form-data\b/i.test(request.headers["content-type"] ?? "")) return yield* Effect.fail(noFile)
  let stored: StoredObject | undefined
  const take = (
    part: Multipart.Part
  ): Effect.Effect<void, Multipart.MultipartError | ObjectTooLarge | StoreError> => {
    if (!Multipart.isFile(part)) return Effect.void
    if (part.key !== "file" || stored !== undefined) return Stream.runDrain(part.content)
    return Effect.map(objects.upload(projectId, part.name, part.content), (object) => {
      stored = object
    })
  }
  // To its end, which shows whether all of it has arrived.
  yield* Stream.runForEach(request.multipartStream, take).pipe(
    Effect.onError(() =>
      stored === undefined ? Effect.void : Effect.ignore(objects.remove(projectId, stored.objectId))
    ),
    Effect.provideContext(limits),
    Effect.catch((error): Effect.Effect<never, Failure> =>
      Multipart.isMultipartError(error)
        ? Effect.fail(failure(Code.bodyUnreadable, "The body is not a well formed multipart form"))
        : failWith(error)
    )
  )
  if (stored === undefined) return yield* Effect.fail(noFile)
  return { object: stored, url: yield* addressOf(stored) }
})

const success = <Data>(data: Data) => ({ code: 0, message: "success", data }) as const

export const layer = group(
  Api,
  "objects",
  Effect.fnUntraced(function*(handlers) {
    const objects = yield* Objects
    const products = yield* Products
    return handlers
      .handleRaw(
        "uploadObject",
        () =>
          CurrentPrincipal.use(({ projectId }) =>
            Effect.map(upload(objects, projectId), ({ object, url }) => success({ url, md5: object.md5 }))
          )
      )
      .handleRaw(
        "uploadFirmwareFile",
        ({ params }) =>
          CurrentPrincipal.use(({ projectId }) =>
            products.get(projectId, params.product_key).pipe(
              Effect.catch(failWith),
              Effect.andThen(upload(objects, projectId)),
              Effect.map(({ object, url }) => success({ filename: url, size: object.size, md5: object.md5 }))
            )
          )
      )
  })
)
