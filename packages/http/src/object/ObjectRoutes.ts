/**
 * `GET`, `HEAD` and `DELETE` of the address of an object.
 */
import { AccessKeys, type ByteRange, Objects, objectsPath, roleIncludes, type StoredObject } from "@device-cloud/core"
import { Effect, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { toResponse } from "../middleware/ErrorEnvelope.ts"
import { Code, failure, failWith } from "../Failure.ts"

const path = `${objectsPath}/:object_id/:file_name` as const

export const routes = [{ method: "GET", path }, { method: "DELETE", path }] as const

const noObject = failure(Code.noSuchObject, "There is no such object")

/**
 * The one range that is asked for. `unsatisfiable`: it lies outside. Undefined:
 * none, several, or something that is no range of bytes; the whole is answered.
 */
export const rangeOf = (header: string | undefined, size: number): ByteRange | "unsatisfiable" | undefined => {
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

const find = Effect.fnUntraced(function*(objects: Objects["Service"]) {
  const { params } = yield* HttpRouter.RouteContext
  const object = yield* objects.get(params["object_id"] ?? "").pipe(
    Effect.catchTags({ ObjectNotFound: () => Effect.fail(noObject), StoreError: failWith })
  )
  return object.fileName === params["file_name"] ? object : yield* Effect.fail(noObject)
})

const download = Effect.fnUntraced(function*(objects: Objects["Service"]) {
  const object = yield* find(objects)
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const etag = etagOf(object)
  const common = {
    etag,
    "accept-ranges": "bytes",
    "last-modified": new Date(object.createdAt).toUTCString(),
    "cache-control": "private, max-age=31536000, immutable",
    // Whatever was uploaded, it does not run in a browser.
    "content-disposition": `attachment; filename="${object.fileName}"`,
    "x-content-type-options": "nosniff"
  }
  if (matches(headers["if-none-match"], etag)) return HttpServerResponse.empty({ status: 304, headers: common })
  const ifRange = headers["if-range"]
  const range = ifRange === undefined || ifRange === etag ? rangeOf(headers["range"], object.size) : undefined
  if (range === "unsatisfiable") {
    return HttpServerResponse.setHeader(
      toResponse(failure(Code.rangeUnsatisfiable, `Range: expected bytes below ${object.size}`)),
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

const remove = Effect.fnUntraced(function*(objects: Objects["Service"], accessKeys: AccessKeys["Service"]) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const [, key = ""] = /^Bearer (.*)$/i.exec(headers["authorization"] ?? "") ?? []
  const principal = yield* accessKeys.authenticate(Redacted.make(key)).pipe(Effect.catch(failWith))
  if (!roleIncludes(principal.role, "operator")) {
    return yield* Effect.fail(
      failure(Code.roleTooLow, `This needs the role operator; the access key has the role ${principal.role}`)
    )
  }
  const { objectId } = yield* find(objects)
  yield* objects.remove(principal.projectId, objectId).pipe(Effect.catch(failWith))
  return HttpServerResponse.jsonUnsafe({ code: 0, message: "success" })
})

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const objects = yield* Objects
  const accessKeys = yield* AccessKeys
  const answered = <R>(answer: Effect.Effect<HttpServerResponse.HttpServerResponse, ReturnType<typeof failure>, R>) =>
    answer.pipe(Effect.catch((refusal) => Effect.succeed(toResponse(refusal))))
  yield* router.add("GET", path, answered(download(objects)))
  yield* router.add("DELETE", path, answered(remove(objects, accessKeys)))
}))
