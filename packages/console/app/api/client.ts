/**
 * Calls the management API on the server that the page came from.
 */
import operations from "virtual:operations"
import { ApiError } from "./ApiError.ts"
import type { Operations } from "./Operations.ts"
import { once } from "./repeats.ts"

interface Request {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
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

const call = async (route: string, { headers, params = {}, payload, query = {}, signal }: Request = {}) => {
  const [method, path] = route.split(" ") as [string, string]
  const address = addressOf(path, params, query)
  const body = payload === undefined || payload instanceof FormData ? payload : JSON.stringify(payload)
  const isJsonSent = typeof body === "string"
  const send = (key?: string) =>
    request(address, {
      method,
      headers: {
        ...isJsonSent ? { "content-type": "application/json" } : {},
        ...key === undefined ? {} : { "idempotency-key": key },
        ...headers
      },
      ...body === undefined ? {} : { body },
      ...signal === undefined ? {} : { signal }
    })
  const response = method === "POST" && isJsonSent ? await once(`${address} ${body}`, send) : await send()
  const isJson = response.headers.get("content-type")?.includes("json") === true
  return isJson ? (await response.json() as { readonly data?: unknown }).data : await response.text()
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
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""))
  return search.size === 0 ? filled : `${filled}?${search}`
}

/** Sends a request with the session's cookie. Fails with `ApiError`. */
export const request = async (address: string, init: RequestInit = {}): Promise<Response> => {
  // A page of another origin cannot set this header, so what changes something comes from this page.
  const headers = { accept: "application/json", "x-csrf-protection": "1", ...init.headers }
  let response: Response
  try {
    response = await fetch(address, { ...init, headers, credentials: "same-origin" })
  } catch (error) {
    if (init.signal?.aborted === true) throw error
    throw new ApiError(0, "The server cannot be reached")
  }
  if (response.ok) return response
  throw await errorOf(response)
}

const errorOf = async (response: Response): Promise<ApiError> => {
  try {
    const { code, data, message } = await response.json() as {
      readonly code: number
      readonly message: string
      readonly data?: Readonly<Record<string, unknown>>
    }
    return new ApiError(code, message, data)
  } catch {
    return new ApiError(response.status * 100, `The server answered with status ${response.status}`)
  }
}
