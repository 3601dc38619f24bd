/**
 * What a page reads from the API.
 */
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { ApiError } from "./ApiError.ts"
import { onStreamOpen } from "./live.ts"
import { hasEnded, noticeEnd } from "./session.ts"

/** The state of a read. While it is read again, `data` is what was read before. */
export interface QueryState<A> {
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly reload: () => void
}

export interface Query<A> extends QueryState<A> {
  /**
   * Changes what was read, for example by an event, without asking the server. What is being read meanwhile is changed,
   * too, when it comes: `next` may get data that has the change already.
   */
  readonly change: (next: (data: A) => A) => void
}

/**
 * Reads when the page opens, when one of `inputs` changes, when the stream of
 * events opens, so that it misses nothing that the stream does not tell, and after
 * somebody has signed in again. What comes back after a newer read has begun is dropped.
 */
export const useQuery = <A>(
  read: (signal: AbortSignal) => Promise<A>,
  inputs: ReadonlyArray<unknown>,
  options: { readonly keepWhileLoading?: boolean } = {}
): Query<A> => {
  const [state, setState] = useState<Omit<QueryState<A>, "reload">>({
    data: undefined,
    error: undefined,
    isLoading: true
  })
  const [round, setRound] = useState(0)
  const latest = useRef(read)
  latest.current = read

  const lastRound = useRef(round)
  const isReading = useRef(false)
  const isAsked = useRef(false)
  const changes = useRef<Array<(data: A) => A>>([])

  useEffect(() => {
    const abort = new AbortController()
    const isAgain = lastRound.current !== round
    lastRound.current = round
    isReading.current = true
    changes.current = []
    setState(({ data, error }) => ({
      data: options.keepWhileLoading === false ? undefined : data,
      // What has failed has failed until it succeeds.
      error: isAgain ? error : undefined,
      isLoading: true
    }))
    const load = async () => {
      try {
        const read = await latest.current(abort.signal)
        if (abort.signal.aborted) return
        // What was read may be older than what came meanwhile.
        const data = changes.current.reduce<A>((data, next) => next(data), read)
        setState({ data, error: undefined, isLoading: false })
      } catch (error) {
        if (abort.signal.aborted) return
        noticeEnd(error)
        // What was read of other inputs does not stand for these.
        setState(({ data }) => ({ data: isAgain ? data : undefined, error: asApiError(error), isLoading: false }))
      }
    }
    void load().finally(() => {
      if (abort.signal.aborted) return
      isReading.current = false
      if (isAsked.current) setRound((round) => round + 1)
      isAsked.current = false
    })
    return () => abort.abort()
  }, [...inputs, round])

  // A read under way is not broken off: with an event after the other none would come to its end.
  const reload = useCallback(() => {
    if (isReading.current) isAsked.current = true
    else setRound((round) => round + 1)
  }, [])
  useEffect(() => onStreamOpen(reload), [])
  const change = useCallback((next: (data: A) => A) => {
    if (isReading.current) changes.current.push(next)
    setState((state) => state.data === undefined ? state : { ...state, data: next(state.data) })
  }, [])
  return { ...state, reload, change }
}

/** Reads again and again while the page is in view. `seconds` lie between the reads. */
export const usePolledQuery = <A>(
  read: (signal: AbortSignal) => Promise<A>,
  inputs: ReadonlyArray<unknown>,
  seconds: number
): Query<A> => {
  const query = useQuery(read, inputs)
  const isLoading = useRef(false)
  isLoading.current = query.isLoading
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible" && !hasEnded.value && !isLoading.current) query.reload()
    }, seconds * 1000)
    return () => clearInterval(timer)
  }, [seconds, query.reload])
  return query
}

/** An error of the page itself is shown as one of the API. */
export const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(50000, error instanceof Error ? error.message : String(error))
