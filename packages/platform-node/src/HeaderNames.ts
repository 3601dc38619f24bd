/**
 * Makes header names as most servers write them, for example `Content-Length`. HTTP does
 * not tell capitals apart, but public device SDKs do (docs/protocol/http-uplink.md).
 */
import { ServerResponse } from "node:http"

/** A name whose capitals do not follow from its words. */
const etag = ["etag", "ETag"] as const

/**
 * Returns a function that makes a response write its header names with capitals, and
 * what `date` returns as `Date`. The names of responses are few; each is made once.
 */
export const makeCapitalize = (date: () => string): (response: ServerResponse) => void => {
  const names = new Map<string, string>([etag])

  const nameOf = (name: string): string => {
    let written = names.get(name)
    if (written === undefined) {
      written = name.replaceAll(/(?:^|-)[a-z]/g, (start) => start.toUpperCase())
      names.set(name, written)
    }
    return written
  }

  /** `writeHead` as Effect's server calls it: the headers come last. */
  function writeHead(this: ServerResponse, ...args: Array<unknown>): ServerResponse {
    const headers: Record<string, unknown> = { Date: date() }
    const given = (args.pop() ?? {}) as Readonly<Record<string, unknown>>
    for (const name of Object.keys(given)) headers[nameOf(name)] = given[name]
    return Reflect.apply(ServerResponse.prototype.writeHead, this, [...args, headers]) as ServerResponse
  }

  return (response) => {
    response.writeHead = writeHead as ServerResponse["writeHead"]
  }
}
