/**
 * Calls the management API on the server that the page came from.
 */
import operations from "virtual:operations"
import { texts } from "../text/text.ts"
import { ApiError } from "./ApiError.ts"
import { noticeTime } from "./clock.ts"
import type { Operations } from "./Operations.ts"
import { once, onceGone, shared } from "./repeats.ts"

interface Request {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** Whether what it makes is undone when its dialog is closed: the next dialog then needs one of its own. */
  readonly isUndone?: boolean
}

/** The API, an operation for each member of each group, for example `api.devices.listDevices()`. */
export const api = Object.fromEntries(
  Object.entries(operations).map(([group, endpoints]) => [
    group,
    Object.fromEntries(
      Object.entries(endpoints).map(([name, route]) => [name, (request?: Request) => call(route, request)])
    )
  ])
) as unknown as Operations

const call = async (
  route: string,
  { headers, isUndone = false, params = {}, payload, query = {}, signal }: Request = {}
) => {
  const [method, path] = route.split(" ") as [string, string]
  const address = addressOf(path, params, query)
  const body = payload === undefined || payload instanceof FormData ? payload : JSON.stringify(payload)
  const isJsonSent = typeof body === "string"
  const send = async (key?: string): Promise<unknown> => {
    const response = await request(address, {
      method,
      headers: {
        ...isJsonSent ? { "content-type": "application/json" } : {},
        ...key === undefined ? {} : { "idempotency-key": key },
        ...headers
      },
      ...body === undefined ? {} : { body },
      ...signal === undefined ? {} : { signal }
    }, waitOf(payload))
    return await dataOf(response, signal)
  }
  if (method === "POST" && !(body instanceof FormData)) {
    return await (isUndone ? once : shared)(`${address} ${body ?? ""}`, send)
  }
  if (method === "DELETE") return await onceGone(address, send)
  return await send().catch((error: unknown) => {
    throw method === "GET" ? asMissing(error, { ...query, ...params }) : error
  })
}

/** What is read by something that is no id, for example letters in place of a number, is not there. */
const asMissing = (error: unknown, named: Readonly<Record<string, unknown>>): unknown => {
  const refused = error instanceof ApiError ? Object.keys(error.issues) : []
  const isNoId = refused.length > 0 && refused.every((name) => /_(id|key)$/.test(name))
  return isNoId ? nothingNamed(String(named[refused[0]!])) : error
}

/** What is said of an id that names nothing here. */
export const nothingNamed = (id: string): ApiError => new ApiError(40400, texts().common.nothingNamed(id))

/**
 * What a response of the API has. One that ends before it is whole, or that something in
 * between has made, is none: whether the request has been carried out is not known.
 */
export const dataOf = async (response: Response, signal?: AbortSignal): Promise<unknown> => {
  try {
    const body = await response.json() as { readonly code?: unknown; readonly data?: unknown } | null
    if (body?.code === 0) return body.data
  } catch (error) {
    if (signal?.aborted === true) throw error
  }
  throw new ApiError(0, texts().common.unreadable)
}

/** Where the text that an operation responds can be downloaded by a link. */
export const downloadAddress = (
  [group, name]: readonly [string, string],
  { params = {}, query = {} }: Pick<Request, "params" | "query">
): string => addressOf(operations[group]![name]!.split(" ")[1]!, params, query)

const addressOf = (
  path: string,
  params: Readonly<Record<string, string>>,
  query: Readonly<Record<string, unknown>>
): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value as ReadonlyArray<unknown> : [value]) {
      if (one !== undefined && one !== "") search.append(name, String(one))
    }
  }
  const filled = path.replace(/:(\w+)/g, (_, name: string) => {
    const id = params[name] ?? ""
    // It would lead to another operation.
    if (/^\.{0,2}$/.test(id)) throw nothingNamed(id)
    return encodeURIComponent(id)
  })
  return search.size === 0 ? filled : `${filled}?${search}`
}

/** Seconds for which the server waits for a device before it responds. */
const waitOf = (payload: unknown): number => (payload as { readonly wait?: number } | undefined)?.wait ?? 0

/** Seconds. The server gives up its storage after half of them. */
const longest = 30

/**
 * Sends a request with the session's cookie. Fails with `ApiError`, also if the response is not whole 30 seconds
 * after the `wait` seconds that the server is asked to wait.
 */
export const request = async (address: string, init: RequestInit = {}, wait = 0): Promise<Response> => {
  // A page of another origin cannot set this header, so what changes something comes from this page.
  const headers = { accept: "application/json", "x-csrf-protection": "1", ...init.headers }
  const limit = AbortSignal.timeout((longest + wait) * 1000)
  const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit
  let response: Response
  try {
    response = await fetch(address, { ...init, headers, signal, credentials: "same-origin" })
  } catch (error) {
    if (init.signal?.aborted === true) throw error
    throw new ApiError(0, texts().common.unreachable)
  }
  noticeTime(response)
  if (response.ok) return response
  throw await errorOf(response)
}

/** What a response says that is no success. */
export const errorOf = async (response: Response): Promise<ApiError> => {
  const body = await response.json().catch(() => null) as Partial<Pick<ApiError, "code" | "data" | "message">> | null
  // Something in between may answer in a form of its own, also with a `code` that is none of the API.
  return typeof body?.code === "number" && Math.floor(body.code / 100) === response.status &&
      typeof body.message === "string"
    ? new ApiError(body.code, body.message, body.data)
    : new ApiError(0, texts().common.answeredWith(response.status))
}
