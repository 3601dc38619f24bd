/**
 * Where objects are found (docs/api/objects.md).
 */
import { objectsPath, type StoredObject } from "@device-cloud/core"
import { Context, Effect } from "effect"
import { HttpServerRequest } from "effect/http"

/** What the addresses of objects begin with, for example `https://cloud.example.com`; undefined: where the request went. */
export const PublicUrl = Context.Reference<string | undefined>("@device-cloud/http/PublicUrl", {
  defaultValue: () => undefined
})

/** Makes a function from an object to its address, which is the object's only protection. */
export const makeObjectAddress = Effect.map(
  PublicUrl,
  (publicUrl) => {
    const given = publicUrl?.replace(/\/+$/, "")
    return ({ fileName, objectId }: StoredObject) =>
      Effect.map(HttpServerRequest.HttpServerRequest, ({ headers, protocol = "http" }) => {
        const base = given ?? `${protocol}://${headers["host"] ?? "localhost"}`
        return `${base}${objectsPath}/${objectId}/${fileName}`
      })
  }
)
