/**
 * `GET`, `HEAD` and `DELETE` of the address of an object (docs/api/objects.md).
 * GET and HEAD need no access key: the address is the object's only protection.
 */
import { type ByteRange, Objects, objectsPath, type StoredObject } from "@device-cloud/core"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type DomainError, failWith } from "../DomainFailures.ts"
import { done } from "../Envelope.ts"
import type { Failure } from "../Failure.ts"
import { makeAuthorize } from "../middleware/Authorization.ts"
import { credentialOf } from "../middleware/Credential.ts"
import { toResponse } from "../middleware/ErrorEnvelope.ts"
import type { Route } from "../middleware/RouteTable.ts"
import { NoSuchObject, RangeUnsatisfiable } from "./ObjectFailures.ts"

const path = `${objectsPath}/:object_id/:file_name` as const

/** The routes, for the table of all. */
export const routes: ReadonlyArray<Route> = [{ method: "GET", path }, { method: "DELETE", path }]

/** Serves objects. */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const objects = yield* Objects
  const authorize = yield* makeAuthorize
  yield* router.add("GET", path, withEnvelope(download(objects)))

  const remove = Effect.gen(function*() {
    const request = yield* HttpServerRequest.HttpServerRequest
    const route = { area: "objects", action: "objects.deleteObject", isRead: false, path }
    return yield* authorize(
      request,
      credentialOf(request),
      "operator",
      route,
      ({ projectId }) =>
        Effect.gen(function*() {
          const { objectId } = yield* find(objects)
          return HttpServerResponse.jsonUnsafe(yield* done(objects.remove(projectId, objectId)))
        })
    )
  })
  yield* router.add("DELETE", path, withEnvelope(remove))
}))

/** Responds with the envelope to a failure. */
const withEnvelope = <E extends DomainError | Failure, R>(
  response: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> =>
  response.pipe(
    Effect.catch(failWith<E>),
    Effect.catch((failure) => Effect.succeed(toResponse(failure as Failure)))
  )

const noObject = NoSuchObject.make({ message: "There is no such object" })

/** Fails with `NoSuchObject` when the object of the path has another file name. */
const find = Effect.fnUntraced(function*(objects: Objects["Service"]) {
  const { params } = yield* HttpRouter.RouteContext
  const object = yield* objects.get(params["object_id"] ?? "").pipe(
    Effect.catchTag("ObjectNotFound", () => Effect.fail(noObject))
  )
  return object.fileName === params["file_name"] ? object : yield* Effect.fail(noObject)
})

const download = Effect.fnUntraced(function*(objects: Objects["Service"]) {
  const object = yield* find(objects)
  const { headers, method } = yield* HttpServerRequest.HttpServerRequest
  const etag = etagOf(object)
  const lastModified = new Date(object.createdAt).toUTCString()
  const common = {
    etag,
    "accept-ranges": "bytes",
    "last-modified": lastModified,
    "cache-control": "private, max-age=31536000, immutable",
    // A browser must not run what somebody uploaded.
    "content-disposition": `attachment; filename="${object.fileName}"`
  }
  if (matches(headers["if-none-match"], etag)) return HttpServerResponse.empty({ status: 304, headers: common })
  const ifRange = headers["if-range"]
  // Only GET has ranges (RFC 9110, section 14.2). An object does not change, so its date is as strong as its tag.
  const takesRange = method === "GET" && (ifRange === undefined || ifRange === etag || ifRange === lastModified)
  const range = takesRange ? rangeOf(headers["range"], object.size) : undefined
  if (range === "unsatisfiable") {
    return HttpServerResponse.setHeader(
      toResponse(RangeUnsatisfiable.make({ message: `Range: expected bytes below ${object.size}` })),
      "content-range",
      `bytes */${object.size}`
    )
  }
  return HttpServerResponse.stream(objects.read(object, range), {
    status: range === undefined ? 200 : 206,
    contentType: "application/octet-stream",
    contentLength: range === undefined ? object.size : range.end - range.start + 1,
    headers: range === undefined
      ? common
      : { ...common, "content-range": `bytes ${range.start}-${range.end}/${object.size}` }
  })
})

/**
 * The one range that a header asks for. `unsatisfiable`: it begins after the end.
 * Undefined, for the whole object: the header is absent, has several ranges, or
 * is no range of bytes.
 */
const rangeOf = (header: string | undefined, size: number): ByteRange | "unsatisfiable" | undefined => {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? "") ?? []
  if (first === "" && last === "") return undefined
  if (first === "") {
    const length = Math.min(Number(last), size)
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== "" && Number(last) < start) return undefined
  return start >= size ? "unsatisfiable" : { start, end }
}

const etagOf = ({ md5 }: StoredObject): string => `"${md5}"`

/** Whether one of the tags in the header is that of the object. */
const matches = (header: string | undefined, etag: string): boolean =>
  header !== undefined && header.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag)
