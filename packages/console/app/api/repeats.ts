/**
 * Requests that create, delete or do something, once. If no response comes, the server may have
 * carried out the request all the same. When it is sent again within some minutes it
 * bears the key of the first time, and gets its response (docs/api/README.md).
 */
import { ApiError } from "./ApiError.ts"

/** Milliseconds. Later, the same is meant anew. */
const remembered = 300_000

interface Open {
  readonly key: string
  readonly at: number
}

/** Requests without a response, by what they ask for. */
const open = new Map<string, Open>()

/** Sends a request with its key. `what`: all that makes it this request. */
export const once = async <A>(what: string, send: (key: string) => Promise<A>): Promise<A> => {
  const before = open.get(what)
  const key = before !== undefined && before.at > Date.now() - remembered ? before.key : newKey()
  open.delete(what)
  try {
    return await send(key)
  } catch (error) {
    if (error instanceof ApiError && isOpen(error)) open.set(what, { key, at: Date.now() })
    throw error
  }
}

/** What is to be deleted and may be, because no response has come. */
const goneMaybe = new Set<string>()

/** Deletes what an address names. That it is missing when it is asked for again is what was asked for. */
export const onceGone = async <A>(what: string, send: () => Promise<A>): Promise<A | undefined> => {
  const isAgain = goneMaybe.delete(what)
  try {
    return await send()
  } catch (error) {
    if (isAgain && error instanceof ApiError && error.isMissing) return undefined
    if (error instanceof ApiError && isOpen(error)) goneMaybe.add(what)
    throw error
  }
}

/** Nobody has answered, or the storage has not. */
const isOpen = ({ code }: ApiError): boolean => code === 0 || code >= 50000

/** `crypto.randomUUID` is missing where a page came without TLS. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")
