/**
 * Who is signed in.
 */
import { computed, signal } from "@preact/signals"
import { ApiError } from "./ApiError.ts"
import { dataOf, request } from "./client.ts"
import type { Operations } from "./Operations.ts"
import { forgetRepeats } from "./repeats.ts"

const address = "/openapi/v1/browser-sessions"
const current = `${address}/current`

/** The access key with which somebody is signed in. */
export interface Session {
  readonly project_id: string
  readonly project_name?: string
  readonly key_id: string
  readonly key_name?: string
  readonly role: Role
  /** What the key is limited to. */
  readonly scopes?: { readonly products?: ReadonlyArray<string>; readonly actions?: ReadonlyArray<string> }
  readonly expires_at: string
}

/** Each may do what the ones before it may. */
const roles = ["viewer", "operator", "admin", "owner"] as const
export type Role = (typeof roles)[number]

/** Undefined until the server has been asked; null: nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined)

/** Whether the session has ended by itself. The page stays as it is until somebody has signed in again. */
export const hasEnded = signal(false)

/** Whether the one who is signed in may see what needs this role, such as secrets. What changes something asks `canWrite`. */
export const may = (role: Role): boolean => roles.indexOf(session.value?.role ?? "viewer") >= roles.indexOf(role)

/** Whether a key that is limited to operations may do this one, such as `devices:write`. */
const isAmongActions = (action: `${string}:${"read" | "write"}`): boolean =>
  session.value?.scopes?.actions?.includes(action) ?? true

/** Whether the one who is signed in may change what a group of the API has, by the name that scopes have for it. */
export const canWrite = (group: keyof Operations, role: Role = "operator"): boolean =>
  may(role) && isAmongActions(`${group}:write`)

/** The products that the access key is limited to; undefined: it sees all of the project. */
export const ownProducts = computed(() => session.value?.scopes?.products)

/** What a page needs of an access key. */
export interface Need {
  /** The group of the API that it reads, by the name that scopes have for it. */
  readonly reads: keyof Operations
  /** Whether a key that is limited to products may read it. */
  readonly isOfProducts: boolean
  readonly role?: Role
}

/** Whether the one who is signed in may read what a page shows. */
export const canRead = ({ isOfProducts, reads, role = "viewer" }: Need): boolean => {
  return may(role) && (ownProducts.value === undefined || isOfProducts) && isAmongActions(`${reads}:read`)
}

/** The other windows of the browser: they have the same cookie. */
const windows = new BroadcastChannel("device-cloud-session")

// A channel has no target: it is of this origin.
// oxlint-disable-next-line unicorn/require-post-message-target-origin
const tellWindows = () => windows.postMessage("changed")

/**
 * Takes over who has signed in, or out, in another window, and calls back when somebody is signed in. Asks the server
 * until it answers; an answer that comes after the next change is dropped.
 */
export const followWindows = (onSignedIn: () => void): () => void => {
  let timer: ReturnType<typeof setTimeout> | undefined
  let asked = 0
  const follow = async () => {
    clearTimeout(timer)
    const mine = ++asked
    const isOld = () => mine !== asked
    try {
      const next = await readSession()
      if (isOld()) return
      takeOver(next)
      hasEnded.value = false
      onSignedIn()
    } catch (error) {
      if (isOld()) return
      if (error instanceof ApiError && error.isPassing) timer = setTimeout(follow, 2000)
      else noticeEnd(error)
    }
  }
  windows.addEventListener("message", follow)
  return () => {
    windows.removeEventListener("message", follow)
    clearTimeout(timer)
    asked++
  }
}

const takeOver = (next: Session) => {
  if (next.key_id !== session.value?.key_id) forgetRepeats()
  session.value = next
}

const sessionOf = async (response: Response) => await dataOf(response) as Session

const readSession = async () => sessionOf(await request(current))

/** Asks the server who is signed in. */
export const loadSession = async (): Promise<void> => {
  try {
    takeOver(await readSession())
  } catch (error) {
    if (error instanceof ApiError && error.isPassing) throw error
    session.value = null
  }
}

/** Exchanges an access key for the cookie of a session. */
export const signIn = async (accessKey: string): Promise<void> => {
  const response = await request(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ access_key: accessKey })
  })
  takeOver(await sessionOf(response))
  hasEnded.value = false
  tellWindows()
}

/** Ends the session, also for other windows: they ask for the key again. */
export const signOut = async (): Promise<void> => {
  try {
    await request(current, { method: "DELETE" })
  } catch (error) {
    // One that has ended by itself needs no end.
    if (!(error instanceof ApiError && error.isEnd)) throw error
  }
  session.value = null
  hasEnded.value = false
  tellWindows()
}

/** Finds out from what has failed that the session has ended. */
export const noticeEnd = (error: unknown): void => {
  if (error instanceof ApiError && error.isEnd && session.value) hasEnded.value = true
}
