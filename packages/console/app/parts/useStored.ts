/**
 * A form of something that is stored as a whole: somebody else may store it anew while
 * one writes.
 */
import { useEffect, useRef, useState } from "preact/hooks"

export interface Stored<A> {
  /** What the form began with, or what its writer has been shown since. */
  readonly base: A
  /** What somebody else has stored since one began to write. */
  readonly newer: { readonly stored: A } | undefined
  /**
   * Stores what `put` does, and returns it, or what is stored already if that is what one has written.
   * Undefined: there is something newer, which is to be shown first.
   */
  readonly save: (read: () => Promise<A>, put: () => Promise<A>) => Promise<A | undefined>
}

/** `idOf` tells two that are stored apart. What is newer goes to `take` while `isChanged` says that nothing is written. */
export const useStored = <A>(
  stored: A,
  { idOf, isChanged, take }: {
    readonly idOf: (stored: A) => string | number
    readonly isChanged: (base: A) => boolean
    readonly take: (stored: A) => void
  }
): Stored<A> => {
  const [base, setBase] = useState(stored)
  const [newer, setNewer] = useState<{ readonly stored: A }>()
  // Says of what is stored whether it differs from what was sent without a response.
  const differsFromSent = useRef<((stored: A) => boolean) | undefined>(undefined)
  const isOwn = (latest: A) => !isChanged(latest) || differsFromSent.current?.(latest) === false
  const meet = (latest: A) => {
    setBase(latest)
    setNewer({ stored: latest })
  }
  useEffect(() => {
    if (idOf(stored) === idOf(base)) return
    if (isChanged(base) && !isOwn(stored)) return meet(stored)
    setBase(stored)
    if (!isChanged(base)) take(stored)
  }, [idOf(stored)])
  // Who takes what is newer begins with it.
  useEffect(() => {
    if (newer !== undefined && !isChanged(base)) setNewer(undefined)
  })
  const save = async (read: () => Promise<A>, put: () => Promise<A>) => {
    const latest = await read()
    const isNewer = idOf(latest) !== idOf(base)
    if (isNewer && !isOwn(latest)) return void meet(latest)
    differsFromSent.current = isChanged
    const saved = isNewer && !isChanged(latest) ? latest : await put()
    differsFromSent.current = undefined
    setBase(saved)
    setNewer(undefined)
    return saved
  }
  return { base, newer, save }
}
