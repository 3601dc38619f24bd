/**
 * The stream of events of a server, which begins again where it has ended.
 */
import { Console, Effect, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { explain, failure, isApiFailure } from "./CommandFailure.ts"
import { patiently, Server } from "./Server.ts"

/** Which events are told. */
export interface EventFilter {
  readonly product_key?: string
  readonly device_id?: string
  /** Types separated by commas. */
  readonly type?: string
}

/** What happened. */
export interface Event {
  readonly id: string
  readonly type: string
  /** `time`, the names of the device, and what the type adds (docs/api/events.md). */
  readonly data: Readonly<Record<string, unknown>>
}

/** A stream that has once been open is opened again, forever. */
const pause = "1 second"

/**
 * Follows what happens. Calls `onOpen` when the server has begun to tell. Fails if
 * the server refuses; a connection that breaks is made again, and misses nothing.
 */
export const follow = Effect.fnUntraced(function*(filter: EventFilter, onOpen: Effect.Effect<void> = Effect.void) {
  const server = yield* Server
  const http = yield* HttpClient.HttpClient
  let last: string | undefined
  let wasOpen = false

  const open = Effect.gen(function*() {
    const request = HttpClientRequest.get(`${server.url}/openapi/v1/events`).pipe(
      HttpClientRequest.setUrlParams({ ...filter }),
      HttpClientRequest.bearerToken(server.key),
      last === undefined ? (request) => request : HttpClientRequest.setHeader("last-event-id", last)
    )
    const response = yield* http.execute(request)
    if (response.status !== 200) {
      const body = yield* Effect.orElseSucceed(response.json, () => undefined)
      return yield* Effect.fail(isApiFailure(body) ? body : failure(`${server.url} answers with ${response.status}`))
    }
    wasOpen = true
    yield* onOpen
    return parse(Stream.decodeText(response.stream))
  })

  const again = (error: unknown) =>
    wasOpen && !(isApiFailure(error) && error.code < 50_000)
      ? Stream.fromEffectDrain(
        Effect.andThen(Console.error("The connection has ended; trying again."), Effect.sleep(pause))
      )
      : Stream.fail(explain(server.url)(error))

  return Stream.suspend(() => Stream.unwrap(patiently(open))).pipe(
    Stream.tap(({ id }) =>
      Effect.sync(() => {
        if (id !== "") last = id
      })
    ),
    Stream.filter(({ data }) => data.length > 0),
    Stream.map(({ data, id, type }): Event => ({ id, type, data: JSON.parse(data.join("\n")) as Event["data"] })),
    // A stream that the server ends is one that has broken, too.
    Stream.concat(Stream.fail(failure("The stream has ended"))),
    Stream.catch(again),
    Stream.forever
  )
})

/** What stands between two empty lines. Without data it has the place of the stream alone. */
interface Block {
  readonly id: string
  readonly type: string
  readonly data: ReadonlyArray<string>
}

const empty: Block = { id: "", type: "message", data: [] }

/** Reads server-sent events. */
const parse = <E, R>(text: Stream.Stream<string, E, R>): Stream.Stream<Block, E, R> =>
  text.pipe(
    Stream.splitLines,
    Stream.mapAccum(() => empty, (block, line): readonly [Block, ReadonlyArray<Block>] => {
      if (line === "") return [empty, [block]]
      const [, name, value = ""] = /^([^:]*):? ?(.*)$/s.exec(line)!
      switch (name) {
        case "id":
          return [{ ...block, id: value }, []]
        case "event":
          return [{ ...block, type: value }, []]
        case "data":
          return [{ ...block, data: [...block.data, value] }, []]
        default:
          return [block, []]
      }
    })
  )
