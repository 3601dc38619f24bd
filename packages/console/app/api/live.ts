/**
 * The events of the project as they happen: one stream for the page.
 */
import { signal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { ApiError } from "./ApiError.ts"
import { request } from "./client.ts"
import { hasEnded, noticeEnd, ownProducts } from "./session.ts"

/** An event of the stream; `docs/api/events.md` says what each type has. */
export interface LiveEvent {
  readonly id: string
  readonly type: LiveEventType
  readonly product_key?: string
  readonly device_name?: string
  readonly device_id?: string
  /** Unix milliseconds. */
  readonly time: number
  readonly [field: string]: unknown
}

export const liveEventTypes = [
  "status",
  "takeover",
  "property",
  "event",
  "reply",
  "upgrade",
  "lifecycle",
  "topology",
  "scene"
] as const
export type LiveEventType = (typeof liveEventTypes)[number]

/** Which events a part of the page wants; without a field, all. */
export interface LiveFilter {
  readonly device_id?: string | undefined
  readonly product_key?: string | undefined
  readonly types?: ReadonlyArray<LiveEventType>
  /** Whether it wants what happens while the window is hidden, too: nothing could read that afterwards. */
  readonly whileHidden?: boolean
}

/** `lost` for as long as the server cannot be reached; `off` also if the server refuses these events. */
export const connection = signal<"off" | "connecting" | "live" | "lost">("off")

const streamOpened = new Set<() => void>()

/** Calls back when the stream opens, and when events are missing in it: the page reads its state again. */
export const onStreamOpen = (callback: () => void): () => void => {
  streamOpened.add(callback)
  return () => {
    streamOpened.delete(callback)
  }
}

/** Lets everything that is shown be read again. */
export const readAgain = (): void => {
  for (const callback of streamOpened) callback()
}

interface Listener {
  readonly filter: LiveFilter
  readonly onEvent: (event: LiveEvent) => void
}

const listeners = new Set<Listener>()
let stream: { readonly address: string; readonly close: () => void } | undefined
let isStale = false

/**
 * Listens until the function that it returns is called. All listeners share a
 * stream: a browser keeps few connections to a server.
 */
export const listen = (filter: LiveFilter, onEvent: (event: LiveEvent) => void): () => void => {
  const listener = { filter, onEvent }
  listeners.add(listener)
  refresh()
  return () => {
    listeners.delete(listener)
    refresh()
  }
}

/**
 * A page that follows another changes the listeners twice at once: the stream is opened once.
 * All windows share the connections of the browser: one that is hidden leaves them to the others.
 */
const refresh = () => {
  if (isStale) return
  isStale = true
  queueMicrotask(() => {
    isStale = false
    const filters = [...listeners].map(({ filter }) => filter)
      .filter(({ whileHidden }) => whileHidden === true || document.visibilityState === "visible")
    const address = filters.length === 0 ? undefined : addressOf(filters)
    if (address === stream?.address) return
    stream?.close()
    stream = address === undefined ? undefined : { address, close: open(address) }
    if (stream === undefined) connection.value = "off"
  })
}

document.addEventListener("visibilitychange", refresh)

/** A stream that has what any of the listeners wants. */
const addressOf = (filters: ReadonlyArray<LiveFilter>): string => {
  const shared = <Field extends "device_id" | "product_key">(field: Field) => {
    const values = new Set(filters.map((filter) => filter[field]))
    return values.size === 1 ? [...values][0] : undefined
  }
  const search = new URLSearchParams()
  const device = shared("device_id")
  // A key that is limited to products has to name one, also with a device: that all listeners
  // share has one product, which one of them names.
  const [ownProduct, ...otherProducts] = ownProducts.value ?? []
  const product = (device === undefined ? shared("product_key") : productIn(filters)) ??
    (otherProducts.length === 0 ? ownProduct : undefined)
  if (device !== undefined) search.set("device_id", device)
  if (product !== undefined) search.set("product_key", product)
  if (filters.every(({ types }) => types !== undefined)) {
    search.set("type", [...new Set(filters.flatMap(({ types = [] }) => types))].sort().join(","))
  }
  return `/openapi/v1/events?${search}`
}

const productIn = (filters: ReadonlyArray<LiveFilter>): string | undefined =>
  filters.map(({ product_key }) => product_key).find((product) => product !== undefined)

/** Milliseconds without an event after which the stream is opened anew: a network may have forgotten it without a word. */
const longestSilence = 60_000

/** The server sends what was missed after the last event: the browser names it, or the address of a new stream does. */
const open = (address: string): () => void => {
  let source: EventSource
  let last = ""
  let timer: ReturnType<typeof setTimeout> | undefined
  let silence: ReturnType<typeof setTimeout> | undefined
  const closed = new AbortController()
  const hear = () => {
    clearTimeout(silence)
    silence = setTimeout(() => {
      source.close()
      connect()
      // After another silence the server need not search all that has happened since then: the page reads its state.
      last = ""
    }, longestSilence)
  }
  const connect = () => {
    hear()
    source = new EventSource(last === "" ? address : `${address}&last_event_id=${encodeURIComponent(last)}`)
    source.addEventListener("open", () => {
      connection.value = "live"
      // What the page has read may be older than the first event of the stream.
      readAgain()
    })
    source.addEventListener("error", () => {
      // A response that is no stream ends it for good: the server starts, or refuses.
      if (source.readyState === EventSource.CLOSED) void goOn()
      else connection.value = "lost"
    })
    source.addEventListener("gap", readAgain)
    for (const type of liveEventTypes) {
      source.addEventListener(type, (message: MessageEvent<string>) => {
        hear()
        last = message.lastEventId
        const event = { ...JSON.parse(message.data) as LiveEvent, id: last, type }
        for (const { filter, onEvent } of listeners) if (fits(event, filter)) onEvent(event)
      })
    }
  }
  const goOn = async () => {
    clearTimeout(silence)
    const isRefused = await refuses(address, closed.signal)
    if (closed.signal.aborted) return
    connection.value = isRefused ? "off" : "lost"
    // The next listener asks anew: somebody else may have signed in.
    if (isRefused) stream = undefined
    else connectLater()
  }
  /** Nobody is let in until somebody has signed in again. */
  const connectLater = () => {
    timer = setTimeout(() => hasEnded.value ? connectLater() : connect(), 2000)
  }
  if (connection.value === "off") connection.value = "connecting"
  connect()
  return () => {
    closed.abort()
    clearTimeout(timer)
    clearTimeout(silence)
    source.close()
  }
}

/** Whether the server refuses these events, for example to this access key; `EventSource` does not tell. */
const refuses = async (address: string, signal: AbortSignal): Promise<boolean> => {
  try {
    const response = await request(address, { signal })
    await response.body?.cancel()
    return false
  } catch (error) {
    noticeEnd(error)
    return error instanceof ApiError && !error.isPassing && !error.isEnd
  }
}

const fits = (event: LiveEvent, { device_id, product_key, types }: LiveFilter): boolean =>
  (device_id === undefined || event.device_id === device_id) &&
  (product_key === undefined || event.product_key === product_key) &&
  (types === undefined || types.includes(event.type))

/** Calls back for each event that fits, while the part of the page is shown. */
export const useLive = (filter: LiveFilter, onEvent: (event: LiveEvent) => void): void => {
  const latest = useRef(onEvent)
  latest.current = onEvent
  useEffect(() => listen(filter, (event) => latest.current(event)), keysOf(filter))
}

/** How long events are gathered before they are drawn, milliseconds. */
const moment = 250

/**
 * The same, with all events of a moment at once: a page that draws what a thousand
 * events a second tell draws it four times.
 */
export const useLiveMoments = (filter: LiveFilter, onEvents: (events: ReadonlyArray<LiveEvent>) => void): void => {
  const latest = useRef(onEvents)
  latest.current = onEvents
  useEffect(() => {
    let waiting: Array<LiveEvent> = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const end = listen(filter, (event) => {
      waiting.push(event)
      if (waiting.length > 1) return
      timer = setTimeout(() => {
        const events = waiting
        waiting = []
        latest.current(events)
      }, moment)
    })
    return () => {
      end()
      // What fits this filter need not fit the next one.
      clearTimeout(timer)
    }
  }, keysOf(filter))
}

/** What a filter consists of. */
const keysOf = ({ device_id, product_key, types }: LiveFilter) => [device_id, product_key, types?.join(",")]
