/**
 * A form of something that is stored as a whole: somebody else may store it anew while
 * one writes.
 */
import { useEffect, useState } from "preact/hooks"

export interface Stored<A> {
  /** What the form began with, or what its writer has been shown since. */
  readonly base: A
  /** What somebody else has stored since one began to write. */
  readonly newer: { readonly stored: A } | undefined
  /** Stores what `put` does, and returns it. Undefined: there is something newer, which is to be shown first. */
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
  const meet = (latest: A) => {
    setBase(latest)
    setNewer({ stored: latest })
  }
  useEffect(() => {
    if (idOf(stored) === idOf(base)) return
    if (isChanged(base)) return meet(stored)
    setBase(stored)
    take(stored)
  }, [idOf(stored)])
  // Who takes what is newer begins with it.
  useEffect(() => {
    if (newer !== undefined && !isChanged(base)) setNewer(undefined)
  })
  const save = async (read: () => Promise<A>, put: () => Promise<A>) => {
    const latest = await read()
    if (idOf(latest) !== idOf(base)) return void meet(latest)
    const saved = await put()
    setBase(saved)
    setNewer(undefined)
    return saved
  }
  return { base, newer, save }
}
