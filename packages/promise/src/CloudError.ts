/**
 * The one error with which promises of the cloud reject.
 */
import type { DeviceCloud } from "@device-cloud/core"
import type { InvalidRateLimit } from "@device-cloud/http"
import type { Cause, Schema } from "effect"
import type { HttpClientError } from "effect/http"
import type { ApiFailures } from "./Api.ts"
import type { Failures } from "./Promised.ts"

/** Failures of a call whose details are in `cause` alone: no server was reached, or it is none of ours. */
type CallFailure = HttpClientError.HttpClientError | Schema.SchemaError

/** The fields that an error of the domain has beyond those of every error. */
type FieldsOf<E> = { readonly [Field in Exclude<keyof E, keyof Cause.YieldableError>]: E[Field] }

/** What a failure becomes; each of a union by itself. */
export type CloudErrorOf<E> = E extends CallFailure ? Error & { readonly code: E["_tag"]; readonly _tag: E["_tag"] }
  : E extends { readonly _tag: infer Tag } ? Error & FieldsOf<E> & { readonly code: Tag }
  : E extends { readonly code: infer Code } ?
      & Error
      & { readonly code: Code; readonly data: E extends { readonly data: infer Data } ? Data : undefined }
  : never

/**
 * An expected failure. Its `code` says which one, and TypeScript then knows its fields:
 *
 * - of the core, the name of the error of the domain, for example `"DeviceNotFound"`.
 *   It has the fields of that error; its `_tag` is the same as `code`.
 * - of the management API, the code of the response, for example 40402
 *   (docs/api/errors.md), with the `data` of the response.
 * - `"HttpClientError"`: no server was reached, or its response cannot be read;
 *   `"SchemaError"`: a request, a response or an id has not the form that it must have.
 *
 * `cause` is the error of the domain, or what has failed.
 *
 * ```ts
 * try {
 *   await cloud.devices.remove("default", deviceId)
 * } catch (error) {
 *   if (error instanceof CloudError && error.code === "DeviceNotFound") console.log(error.device)
 *   else throw error
 * }
 * ```
 *
 * What is not expected rejects as it is: a bug with what was thrown, an aborted
 * call with the reason of its signal.
 */
export type CloudError = CloudErrorOf<
  Failures<(typeof DeviceCloud.services)[number]> | ApiFailures | InvalidRateLimit
>

export const CloudError: {
  readonly prototype: CloudError
  /** Rejections are made by this package alone. */
  new(_: never): CloudError
} = class extends Error {
  override readonly name = "CloudError"
  readonly code: string | number

  constructor(failure: object) {
    const { code, fields, message } = detailsOf(failure)
    super(message, { cause: failure })
    this.code = code
    Object.assign(this, fields)
  }
} as never

/** What a promise rejects with, for a failure of its Effect. */
export const rejection = (failure: unknown): unknown =>
  typeof failure === "object" && failure !== null && ("_tag" in failure || "code" in failure)
    ? new CloudError(failure as never)
    : failure

/** The failures whose fields stay in `cause`. */
const callFailures: ReadonlySet<unknown> = new Set<CallFailure["_tag"]>(["HttpClientError", "SchemaError"])

const detailsOf = (failure: object) => {
  const { _tag, code, data, message } = failure as {
    readonly _tag?: string
    readonly code?: number
    readonly data?: unknown
    readonly message: string
  }
  if (_tag === undefined) return { code: code!, message, fields: { data } }
  return { code: _tag, message, fields: callFailures.has(_tag) ? { _tag } : failure }
}
