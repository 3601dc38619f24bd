/**
 * Where objects are found (decisions, section 14).
 */
import { objectsPath, type StoredObject } from "@device-cloud/core"
import { Context, Effect } from "effect"
import { HttpServerRequest } from "effect/http"

/** What the addresses of objects begin with, for example `https://cloud.example.com`; undefined: where the request went. */
export const PublicUrl = Context.Reference<string | undefined>("@device-cloud/http/PublicUrl", {
  defaultValue: () => undefined
})

/** The address of an object, which is its only protection. */
export const addressOf = Effect.fnUntraced(function*({ fileName, objectId }: StoredObject) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const base = (yield* PublicUrl) ?? `http://${headers["host"] ?? "localhost"}`
  return `${base.replace(/\/+$/, "")}${objectsPath}/${objectId}/${fileName}`
})
