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

/** Requests that run, by what they ask for. */
const running = new Map<string, Promise<unknown>>()

/** Sends a request, unless the same one runs: then it is that one. `what`: all that makes it this request. */
export const shared = <A>(what: string, send: (key: string) => Promise<A>): Promise<A> => {
  const before = running.get(what) as Promise<A> | undefined
  if (before !== undefined) return before
  const sent = once(what, send).finally(() => {
    if (running.get(what) === sent) running.delete(what)
  })
  running.set(what, sent)
  return sent
}

/** Sends a request with its key. `what`: all that makes it this request. */
export const once = async <A>(what: string, send: (key: string) => Promise<A>): Promise<A> => {
  const before = open.get(what)
  const key = before !== undefined && before.at > Date.now() - remembered ? before.key : newKey()
  try {
    const response = await send(key)
    open.delete(what)
    return response
  } catch (error) {
    // What is refused now, for example because the first time still runs, says nothing of the first time.
    if (error instanceof ApiError && isOpen(error)) open.set(what, { key, at: Date.now() })
    throw error
  }
}

/** What is to be deleted and may be, because no response has come. */
const goneMaybe = new Set<string>()

/** Deletes what an address names. That it is missing when it is asked for again is what was asked for. */
export const onceGone = async <A>(what: string, send: () => Promise<A>): Promise<A | undefined> => {
  const isAgain = goneMaybe.has(what)
  try {
    const response = await send()
    goneMaybe.delete(what)
    return response
  } catch (error) {
    if (error instanceof ApiError && isOpen(error)) goneMaybe.add(what)
    if (!(error instanceof ApiError && error.isMissing)) throw error
    goneMaybe.delete(what)
    if (!isAgain) throw error
    return undefined
  }
}

/** What one access key has sent is not that of another. */
export const forgetRepeats = (): void => {
  open.clear()
  running.clear()
  goneMaybe.clear()
}

/** Nobody has answered, or the storage has not. */
const isOpen = ({ code }: ApiError): boolean => code === 0 || code >= 50000

/** `crypto.randomUUID` is missing where a page came without TLS. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")
